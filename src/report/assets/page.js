// The page is complete without this: it adds copying, filtering, shows wide pictures from where the fault began, and opens what is
// folded for the printer.
(() => {
  "use strict";
  for (const line of document.querySelectorAll(".commands .line")) {
    const button = document.createElement("button");
    button.type = "button";
    button.className = "copy";
    button.textContent = "Copy";
    button.setAttribute("aria-label", "Copy this command");
    button.addEventListener("click", async () => {
      const pre = line.querySelector("pre");
      try {
        await navigator.clipboard.writeText(pre.textContent);
        button.textContent = "Copied";
        setTimeout(() => { button.textContent = "Copy"; }, 1500);
      } catch {
        getSelection().selectAllChildren(pre);
      }
    });
    line.append(button);
  }

  for (const sheet of document.querySelectorAll("[data-filter]")) {
    const rows = [...sheet.querySelectorAll("tbody tr")];
    if (rows.length < 12) continue;
    const folds = [...sheet.querySelectorAll("details")];
    const field = document.createElement("input");
    field.type = "search";
    field.className = "filter";
    field.placeholder = "Show rows with ...";
    field.setAttribute("aria-label", "Show only rows that contain this text");
    field.addEventListener("input", () => {
      const wanted = field.value.toLowerCase();
      for (const row of rows) row.hidden = !row.textContent.toLowerCase().includes(wanted);
      if (wanted) for (const fold of folds) fold.open = true;
    });
    sheet.prepend(field);
  }

  for (const box of document.querySelectorAll(".wide")) {
    const node = box.querySelector(".origin") ?? box.querySelector(".bad") ?? box.querySelector(".node");
    if (!node) continue;
    const place = node.getBoundingClientRect(), frame = box.getBoundingClientRect();
    box.scrollLeft += place.left + place.width / 2 - frame.left - frame.width / 2;
    box.scrollTop += place.top - frame.top - frame.height / 5;
  }

  let opened = [];
  addEventListener("beforeprint", () => {
    opened = [...document.querySelectorAll("details:not([open])")];
    for (const fold of opened) fold.open = true;
  });
  addEventListener("afterprint", () => {
    for (const fold of opened) fold.open = false;
  });
})();
