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
    const spec = data.charts[place.dataset.chart];
    const options = { mode: "vega-lite", ast: true, renderer: "svg", actions: false, defaultStyle: false, config };
    try {
      const made = await window.vegaEmbed(place, spec, options);
      views.push({ view: made.view, moves: (spec.params || []).some((one) => one.name === "place") });
    } catch (error) {
      place.textContent = `This chart could not be drawn: ${error.message}`;
    }
  };
  const drawn = Promise.all([...document.querySelectorAll("[data-chart]")].map(draw));

  // ---- the trade: the texts of each target, and a slider over them ----
  const trade = data.trade;
  if (trade) {
    const range = document.getElementById("target"), announced = document.getElementById("announced");
    const command = document.getElementById("command"), cells = [...document.querySelectorAll("[data-figure]")];
    let pause = 0;
    const show = (place) => {
      const row = trade.rows[place];
      for (const cell of cells) cell.textContent = row[cell.dataset.figure];
      range.setAttribute("aria-valuetext", row.target);
      if (command) command.textContent = trade.command.replaceAll("TARGET", row.value);
      for (const one of views) if (one.moves) one.view.signal("place", place).runAsync();
    };
    // Announced once the slider rests: a screen reader would otherwise read out every step.
    const announce = () => {
      clearTimeout(pause);
      pause = setTimeout(() => {
        const figures = cells.map((cell) => `${cell.previousElementSibling.textContent} ${cell.textContent}`);
        announced.textContent = `${figures.join(", ")}.`;
      }, 500);
    };
    range.addEventListener("input", () => { show(Number(range.value)); announce(); });
    document.getElementById("reset").addEventListener("click", () => {
      range.value = String(trade.start);
      show(trade.start);
      announce();
    });
    range.form.addEventListener("submit", (event) => event.preventDefault());
    show(Number(range.value));
  }

  // ---- review: labels, and the file that `naysay mine --reviewed` reads ----
  const whole = (value) => value.toLocaleString("en-US");
  const button = document.getElementById("download");
  if (button) {
    const head = ["query_id", "query_text", "document_id", "document_text", "score", "posterior", "false_negative"];
    const label = (place) => document.querySelector(`input[name="pair${place}"]:checked`).value;
    const cell = (text) => (/[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text);
    const count = () => {
      const done = data.review.filter((_, place) => label(place)).length;
      document.getElementById("labelled").textContent = `${whole(done)} of ${whole(data.review.length)} labelled`;
    };
    for (const one of document.querySelectorAll(".pair input")) one.addEventListener("input", count);
    button.addEventListener("click", () => {
      const lines = [head, ...data.review.map((row, place) => [...row, label(place)])];
      const text = lines.map((row) => `${row.map(cell).join(",")}\n`).join("");
      const link = document.createElement("a");
      link.href = URL.createObjectURL(new Blob([text], { type: "text/csv" }));
      link.download = "labels.csv";
      link.click();
      setTimeout(() => URL.revokeObjectURL(link.href), 1000);
    });
    count();
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
