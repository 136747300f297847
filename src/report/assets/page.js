// The page is complete without this: it adds copying, a choice of the step, filters, sorting and groups, and values below the pointer,
// and shows wide pictures from where the fault began.
(() => {
  "use strict";
  const all = (selector, root = document) => [...root.querySelectorAll(selector)];
  const make = (tag, fields, ...inside) => {
    const element = Object.assign(document.createElement(tag), fields);
    element.append(...inside);
    return element;
  };
  const choice = (label, options, chosen) => {
    const select = make("select", {}, ...options.map(([value, text]) => make("option", { value }, text)));
    select.addEventListener("change", () => chosen(select.value));
    return [make("label", { className: "choice" }, label, " ", select), select];
  };
  document.documentElement.classList.add("scripted");

  for (const line of all(".commands .line")) {
    const button = make("button", { type: "button", className: "copy", ariaLabel: "Copy this command" }, "Copy");
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

  // Tables.
  let step = "";
  const order = new Intl.Collator("en", { numeric: true });
  const prepared = all(".sheet").map((sheet) => {
    const table = sheet.querySelector("table"), body = table.tBodies[0], heads = all("thead th", table);
    const rows = all("tbody tr", sheet), closed = new Set();
    let sorted = -1, down = false, grouped = -1, wanted = "";
    const text = (row, column) => row.cells[column].textContent;
    const compare = (a, b) => heads[sorted].dataset.sort === "number"
      ? (parseFloat(text(a, sorted)) || 0) - (parseFloat(text(b, sorted)) || 0) : order.compare(text(a, sorted), text(b, sorted));
    const fits = (row) => (!step || !row.dataset.step || row.dataset.step === step) && row.textContent.toLowerCase().includes(wanted);

    const heading = (label, inside) => {
      const open = !closed.has(label), count = inside.filter(fits).length;
      const button = make("button", { type: "button", ariaExpanded: String(open) }, label || "not known", make("span", {}, String(count)));
      const title = make("th", { colSpan: heads.length, scope: "rowgroup" }, button);
      button.addEventListener("click", () => {
        if (open) closed.add(label);
        else closed.delete(label);
        draw();
        all(".group button", body).find((other) => other.firstChild.textContent === button.firstChild.textContent)?.focus();
      });
      return make("tr", { className: "group", hidden: count === 0 }, title);
    };
    const draw = () => {
      sheet.querySelector("details")?.remove();
      const list = sorted < 0 ? [...rows] : [...rows].sort((a, b) => (down ? compare(b, a) : compare(a, b)));
      for (const row of list) row.hidden = !fits(row);
      if (grouped < 0) {
        body.replaceChildren(...list);
        return;
      }
      const groups = new Map();
      for (const row of list) {
        const label = text(row, grouped);
        groups.set(label, [...(groups.get(label) ?? []), row]);
      }
      for (const [label, inside] of groups) if (closed.has(label)) for (const row of inside) row.hidden = true;
      body.replaceChildren(...[...groups].flatMap(([label, inside]) => [heading(label, inside), ...inside]));
    };

    const tools = make("div", { className: "tools" });
    if (rows.length >= 12) {
      const field = make("input", { type: "search", placeholder: "Show rows with ...", ariaLabel: "Show only rows with this text" });
      field.addEventListener("input", () => {
        wanted = field.value.toLowerCase();
        draw();
      });
      tools.append(field);
    }
    const groupable = heads.flatMap((head, column) => ("group" in head.dataset ? [[String(column), head.textContent]] : []));
    if (groupable.length > 0 && rows.length > 2) {
      tools.append(choice("Group by", [["-1", "nothing"], ...groupable], (column) => {
        grouped = Number(column);
        closed.clear();
        draw();
      })[0]);
    }
    if (tools.childElementCount > 0) sheet.prepend(tools);
    if (sheet.classList.contains("sorts") && rows.length > 1) {
      heads.forEach((head, column) => {
        const button = make("button", { type: "button", className: "sort" }, head.textContent);
        button.addEventListener("click", () => {
          down = sorted === column && !down;
          sorted = column;
          for (const other of heads) other.removeAttribute("aria-sort");
          head.setAttribute("aria-sort", down ? "descending" : "ascending");
          draw();
        });
        head.replaceChildren(button);
      });
    }
    return { rows, draw };
  });

  // One step of several.
  const parts = all("[data-step]").filter((part) => !part.closest("svg") && part.tagName !== "TR");
  const steps = new Set(all("[data-step]").filter((part) => !part.closest("svg")).map((part) => part.dataset.step));
  if (steps.size > 1) {
    const names = [...steps].sort(order.compare);
    const [label, select] = choice("Step", [["", "all"], ...names.map((name) => [name, name])], (value) => {
      step = value;
      for (const part of parts) part.hidden = step !== "" && part.dataset.step !== step;
      for (const dot of all("svg [data-step]")) dot.classList.toggle("now", dot.dataset.step === step);
      for (const section of all("main > section")) {
        const inside = parts.filter((part) => section.contains(part));
        section.classList.toggle("empty", inside.length > 0 && inside.every((part) => part.hidden));
      }
      for (const sheet of prepared) if (sheet.rows.some((row) => row.dataset.step)) sheet.draw();
    });
    document.querySelector(".contents").append(label);
    // A link may lead to what the choice hides.
    addEventListener("hashchange", () => {
      const target = document.getElementById(location.hash.slice(1));
      if (!target?.closest("[hidden]")) return;
      select.value = "";
      select.dispatchEvent(new Event("change"));
      target.scrollIntoView();
    });
  }

  // Values below the pointer.
  const tip = make("div", { className: "tip", hidden: true });
  document.body.append(tip);
  for (const zone of all("svg .zone")) {
    zone.dataset.tip = zone.textContent;
    zone.replaceChildren();
  }
  const grids = new WeakMap();
  const range = (first, count, end) => (count > 1 ? `s ${first} to ${Math.min(first + count, end) - 1}` : ` ${first}`);
  const cell_text = (cells, event) => {
    const { across, rows, columns } = cells.dataset, place = cells.querySelector(".frame").getBoundingClientRect();
    if (!grids.has(cells)) {
      grids.set(cells, cells.dataset.cells.split(" ").flatMap((run) => {
        const [value, count] = run.split("*");
        return Array(Number(count ?? 1)).fill(value);
      }));
    }
    const values = grids.get(cells), wide = Number(across), high = values.length / wide;
    const row = Math.floor((event.clientY - place.top) / place.height * high);
    const column = Math.floor((event.clientX - place.left) / place.width * wide);
    const value = values[row * wide + column];
    if (row < 0 || column < 0 || column >= wide || value === undefined || value === "none") return "";
    const [down, each] = rows.split(" ").map(Number), [along, most] = columns.split(" ").map(Number);
    if ("wrapped" in cells.dataset && each * most === 1) return `element ${row * along + column}: ${value}`;
    return `row${range(row * each, each, down)}, column${range(column * most, most, along)}: ${value}`;
  };
  const show = (event) => {
    const cells = event.target.closest?.(".cells");
    const text = cells ? cell_text(cells, event) : event.target.dataset?.tip ?? "";
    tip.hidden = text === "";
    if (tip.hidden) return;
    tip.textContent = text;
    const left = Math.min(event.clientX + 12, document.documentElement.clientWidth - tip.offsetWidth - 4);
    tip.style.left = `${Math.max(4, left)}px`;
    tip.style.top = `${event.clientY > 48 ? event.clientY - tip.offsetHeight - 12 : event.clientY + 20}px`;
  };
  addEventListener("pointermove", show);
  addEventListener("pointerdown", show);
  addEventListener("scroll", () => { tip.hidden = true; }, { passive: true });

  for (const box of all(".wide")) {
    const node = box.querySelector(".origin") ?? box.querySelector(".bad") ?? box.querySelector(".node");
    if (!node) continue;
    const place = node.getBoundingClientRect(), frame = box.getBoundingClientRect();
    box.scrollLeft += place.left + place.width / 2 - frame.left - frame.width / 2;
    box.scrollTop += place.top - frame.top - frame.height / 5;
  }
})();
