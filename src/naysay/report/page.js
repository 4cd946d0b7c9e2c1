"use strict";
(() => {
  const data = JSON.parse(document.getElementById("data").textContent);
  const views = [];

  // ---- charts: colours are variables of the page, so that light, dark and print share one drawing ----
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
      views.push({ view: made.view, moves: (spec.params || []).some((one) => one.name === "threshold") });
    } catch (error) {
      place.textContent = `This chart could not be drawn: ${error.message}`;
    }
  };
  const drawn = Promise.all([...document.querySelectorAll("[data-chart]")].map(draw));

  // ---- the threshold: the same figures as naysay.report.at_threshold ----
  const figuresAt = (sample, threshold) => {
    const { scores, values, sizes, k, positives, positiveAnchors, retrieved, scale } = sample;
    const lowest = new Float64Array(sizes.length);
    let suspected = 0, negatives = 0, empty = 0, sum = 0, above = 0, at = 0;
    for (let anchor = 0; anchor < sizes.length; anchor++) {
      const end = at + sizes[anchor];
      let taken = 0, last = Infinity;
      for (; at < end; at++) {
        if (!(values[at] < threshold)) { suspected++; continue; }
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
    const figures = {
      suspected: scale * suspected, negatives: scale * negatives, empty: scale * empty,
      mean_score: negatives ? sum / negatives : NaN, mean_percentile: negatives ? above / negatives : NaN,
      miss_rate: NaN, false_rate: NaN,
    };
    if (sample.byScore && positives.length) {
      let below = 0, passed = 0, found = 0;
      for (let i = 0; i < positives.length; i++) {
        found += retrieved[i];
        if (!(positives[i] < threshold)) continue;
        below++;
        if (retrieved[i] && positives[i] >= lowest[positiveAnchors[i]]) passed++;
      }
      figures.miss_rate = below / positives.length;
      if (sample.share !== null && negatives && found) {
        const part = passed / found;
        figures.false_rate = Math.min(1, (sample.share * part * scores.length) / negatives);
      }
    }
    return figures;
  };

  const digits = (value) => String(Number(value.toPrecision(4)));
  const sixDigits = (value) => String(Number(value.toPrecision(6)));
  const whole = (value) => Math.round(value).toLocaleString("en-US");
  const percent = (value) => {
    const part = 100 * value;
    return `${part >= 1 || part === 0 ? part.toFixed(1) : Number(part.toPrecision(2))} %`;
  };
  const shown = {
    suspected: whole, negatives: whole, empty: whole, mean_score: digits,
    mean_percentile: percent, miss_rate: percent, false_rate: percent,
  };
  const unknown = { mean_score: "none" };

  const sample = data.sample;
  if (sample) {
    for (const name of ["scores", "values", "positives"]) sample[name] = Float32Array.from(sample[name] || []);
    if (sample.byScore) sample.values = sample.scores;
    const range = document.getElementById("threshold"), exact = document.getElementById("exact");
    const command = document.getElementById("command"), announced = document.getElementById("announced");
    let pause = 0;
    // Announced once the slider rests: a screen reader would otherwise read out every step.
    const announce = (threshold) => {
      clearTimeout(pause);
      pause = setTimeout(() => {
        const figures = [...document.querySelectorAll("[data-figure]")].map(
          (cell) => `${cell.previousElementSibling.textContent} ${cell.textContent}`);
        announced.textContent = `Threshold ${digits(threshold)}: ${figures.join(", ")}.`;
      }, 500);
    };
    const show = (threshold) => {
      const figures = figuresAt(sample, threshold);
      for (const cell of document.querySelectorAll("[data-figure]")) {
        const name = cell.dataset.figure, value = figures[name];
        cell.dataset.value = Number.isFinite(value) ? String(value) : "";
        cell.textContent = Number.isFinite(value) ? shown[name](value) : unknown[name] || "unknown";
      }
      range.setAttribute("aria-valuetext", digits(threshold));
      if (command) command.textContent = sample.command.replaceAll("THRESHOLD", sixDigits(threshold));
      for (const one of views) if (one.moves) one.view.signal("threshold", threshold).runAsync();
    };
    const place = (threshold) => Math.round((sample.steps * (threshold - sample.low)) / (sample.high - sample.low));
    const moveTo = (threshold) => {
      range.value = String(place(threshold));
      exact.value = sixDigits(threshold);
      show(threshold);
    };
    range.addEventListener("input", () => {
      const threshold = sample.low + ((sample.high - sample.low) * Number(range.value)) / sample.steps;
      exact.value = sixDigits(threshold);
      show(threshold);
      announce(threshold);
    });
    exact.addEventListener("input", () => {
      const threshold = exact.valueAsNumber;
      if (!Number.isFinite(threshold)) return;
      range.value = String(place(threshold));
      show(threshold);
      announce(threshold);
    });
    document.getElementById("reset").addEventListener("click", () => { moveTo(sample.threshold); announce(sample.threshold); });
    range.form.addEventListener("submit", (event) => event.preventDefault());
    moveTo(sample.threshold);
  }

  // ---- search ----
  const find = document.getElementById("find");
  if (find) {
    const kind = document.getElementById("kind"), matches = document.getElementById("matches");
    const rows = [...document.querySelectorAll(".example")].map((row) => ({
      row, kind: row.closest(".kind").dataset.kind, text: row.textContent.toLowerCase(),
    }));
    const filter = () => {
      const words = find.value.toLowerCase().split(/\s+/).filter(Boolean);
      let count = 0;
      for (const one of rows) {
        const fits = (!kind.value || kind.value === one.kind) && words.every((word) => one.text.includes(word));
        one.row.hidden = !fits;
        if (fits) count++;
      }
      for (const group of document.querySelectorAll(".kind")) {
        group.hidden = !group.querySelector(".example:not([hidden])");
      }
      matches.textContent = `${count} of ${rows.length} examples`;
    };
    find.addEventListener("input", filter);
    kind.addEventListener("input", filter);
    find.form.addEventListener("submit", (event) => event.preventDefault());
    filter();
  }

  // ---- print: open all details ----
  const folded = [];
  addEventListener("beforeprint", () => {
    for (const one of document.querySelectorAll("details:not([open])")) { one.open = true; folded.push(one); }
  });
  addEventListener("afterprint", () => { for (const one of folded.splice(0)) one.open = false; });

  drawn.then(() => { document.documentElement.dataset.ready = "yes"; });
})();
