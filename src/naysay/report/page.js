"use strict";
(() => {
  const data = JSON.parse(document.getElementById("data").textContent);
  const views = [];

  // ---- charts: colours are the page's own, so that light, dark and print need no second drawing ----
  const config = {
    background: null,
    font: "system-ui, sans-serif",
    axis: {
      labelColor: "var(--ink)", titleColor: "var(--ink)", gridColor: "var(--rule)", domainColor: "var(--muted)",
      tickColor: "var(--muted)", labelFontSize: 12, titleFontSize: 13, titleFontWeight: "normal",
    },
    legend: { labelColor: "var(--ink)", titleColor: "var(--ink)", labelFontSize: 12, symbolStrokeColor: "var(--ink)" },
    title: { color: "var(--ink)", fontSize: 13, fontWeight: "normal", anchor: "start" },
    text: { fontSize: 12 },
    view: { stroke: "var(--rule)" },
  };
  const draw = async (place) => {
    const spec = data.charts[Number(place.dataset.chart)].spec;
    const options = { mode: "vega-lite", ast: true, renderer: "svg", actions: false, defaultStyle: false, config };
    try {
      const made = await window.vegaEmbed(place, spec, options);
      views.push({ view: made.view, moves: (spec.params || []).some((one) => one.name === "line") });
    } catch (error) {
      place.textContent = `This chart could not be drawn: ${error.message}`;
    }
  };
  const drawn = Promise.all([...document.querySelectorAll("[data-chart]")].map(draw));

  // ---- the line: the same figures as naysay.report.moved ----
  const figuresAt = (sample, line) => {
    const { scores, values, sizes, k, positives, positiveAnchors, listed, scale } = sample;
    const lowest = new Float64Array(sizes.length);
    let suspected = 0, negatives = 0, empty = 0, sum = 0, above = 0, at = 0;
    for (let anchor = 0; anchor < sizes.length; anchor++) {
      const end = at + sizes[anchor];
      let taken = 0, last = Infinity;
      for (; at < end; at++) {
        if (!(values[at] < line)) { suspected++; continue; }
        if (taken < k[anchor]) {
          taken++;
          last = scores[at];
          sum += last;
          above += (end - at - 1) / sizes[anchor];
        }
      }
      negatives += taken;
      empty += k[anchor] - taken;
      lowest[anchor] = taken < k[anchor] ? -Infinity : last;
    }
    const found = {
      suspected: scale * suspected, negatives: scale * negatives, empty: scale * empty,
      score: negatives ? sum / negatives : NaN, percentile: negatives ? above / negatives : NaN,
      let_through: NaN, false_rate: NaN,
    };
    if (sample.byScore && positives.length) {
      let below = 0, passed = 0, searched = 0;
      for (let i = 0; i < positives.length; i++) {
        searched += listed[i];
        if (!(positives[i] < line)) continue;
        below++;
        if (listed[i] && positives[i] >= lowest[positiveAnchors[i]]) passed++;
      }
      found.let_through = below / positives.length;
      if (sample.share !== null && negatives && searched) {
        const part = passed / searched;
        found.false_rate = Math.min(1, (sample.share * part * scores.length) / negatives);
      }
    }
    return found;
  };

  const digits = (value) => String(Number(value.toPrecision(4)));
  const sixDigits = (value) => String(Number(value.toPrecision(6)));
  const whole = (value) => Math.round(value).toLocaleString("en-US");
  const percent = (value) => {
    const part = 100 * value;
    return `${part >= 1 || part === 0 ? part.toFixed(1) : Number(part.toPrecision(2))} %`;
  };
  const shown = {
    suspected: whole, negatives: whole, empty: whole, score: digits,
    percentile: percent, let_through: percent, false_rate: percent,
  };
  const unknown = { score: "none" };

  const sample = data.sample;
  if (sample) {
    for (const name of ["scores", "values", "positives"]) sample[name] = Float32Array.from(sample[name] || []);
    if (sample.byScore) sample.values = sample.scores;
    const range = document.getElementById("line"), exact = document.getElementById("exact");
    const command = document.getElementById("command"), told = document.getElementById("told");
    let pause = 0;
    // Said once the line rests: a reader who listens would otherwise hear every step.
    const tell = (line) => {
      clearTimeout(pause);
      pause = setTimeout(() => {
        const said = [...document.querySelectorAll("[data-figure]")].map(
          (cell) => `${cell.previousElementSibling.textContent} ${cell.textContent}`);
        told.textContent = `Line at ${digits(line)}: ${said.join(", ")}.`;
      }, 500);
    };
    const show = (line) => {
      const found = figuresAt(sample, line);
      for (const cell of document.querySelectorAll("[data-figure]")) {
        const name = cell.dataset.figure, value = found[name];
        cell.dataset.value = Number.isFinite(value) ? String(value) : "";
        cell.textContent = Number.isFinite(value) ? shown[name](value) : unknown[name] || "unknown";
      }
      range.setAttribute("aria-valuetext", digits(line));
      if (command) command.textContent = sample.command.replaceAll("LINE", sixDigits(line));
      for (const one of views) if (one.moves) one.view.signal("line", line).runAsync();
    };
    const place = (line) => Math.round((sample.steps * (line - sample.low)) / (sample.high - sample.low));
    const go = (line) => {
      range.value = String(place(line));
      exact.value = sixDigits(line);
      show(line);
    };
    range.addEventListener("input", () => {
      const line = sample.low + ((sample.high - sample.low) * Number(range.value)) / sample.steps;
      exact.value = sixDigits(line);
      show(line);
      tell(line);
    });
    exact.addEventListener("input", () => {
      const line = exact.valueAsNumber;
      if (!Number.isFinite(line)) return;
      range.value = String(place(line));
      show(line);
      tell(line);
    });
    document.getElementById("back").addEventListener("click", () => { go(sample.line); tell(sample.line); });
    range.form.addEventListener("submit", (event) => event.preventDefault());
    go(sample.line);
  }

  // ---- search ----
  const find = document.getElementById("find");
  if (find) {
    const kind = document.getElementById("kind"), told = document.getElementById("found");
    const rows = [...document.querySelectorAll(".example")].map((row) => ({
      row, kind: row.closest(".kind").dataset.kind, text: row.textContent.toLowerCase(),
    }));
    const look = () => {
      const words = find.value.toLowerCase().split(/\s+/).filter(Boolean);
      let count = 0;
      for (const one of rows) {
        const fits = (!kind.value || kind.value === one.kind) && words.every((word) => one.text.includes(word));
        one.row.hidden = !fits;
        if (fits) count++;
      }
      for (const shelf of document.querySelectorAll(".kind")) {
        shelf.hidden = !shelf.querySelector(".example:not([hidden])");
      }
      told.textContent = `${count} of ${rows.length} examples`;
    };
    find.addEventListener("input", look);
    kind.addEventListener("input", look);
    find.form.addEventListener("submit", (event) => event.preventDefault());
    look();
  }

  // ---- print: nothing folded away ----
  const folded = [];
  addEventListener("beforeprint", () => {
    for (const one of document.querySelectorAll("details:not([open])")) { one.open = true; folded.push(one); }
  });
  addEventListener("afterprint", () => { for (const one of folded.splice(0)) one.open = false; });

  drawn.then(() => { document.documentElement.dataset.ready = "yes"; });
})();
