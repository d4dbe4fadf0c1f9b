"use strict";
// Tables sort by a click on a header; long ones are paged, searched and copied over all rows. Marks
// of charts tell their values under the pointer and under the keyboard; views of a chart take turns.
(() => {
  const PAGE = 50, LONG = 12;
  const element = (tag, text) => {
    const made = document.createElement(tag);
    if (text !== undefined) made.textContent = text;
    return made;
  };
  const button = (text) => {
    const made = element("button", text);
    made.type = "button";
    return made;
  };
  // A cell that reads as a number with a unit sorts as one, times in us.
  const NUMBER = /^(?:at least |\+)?(-?[\d,]+(?:\.\d+)?)(?: (ps|ns|us|ms|s|B|kB|MB|GB|%|\w+\/s))?$/;
  const SCALES = { ps: 1e-6, ns: 1e-3, ms: 1e3, s: 1e6, kB: 1e3, MB: 1e6, GB: 1e9 };
  const key = (text) => {
    const found = NUMBER.exec(text);
    if (!found) return text.toLowerCase();
    return Number(found[1].replaceAll(",", "")) * (SCALES[found[2]] || 1);
  };
  // A spreadsheet would take what begins like a formula for one.
  const copied = (cell) => {
    const text = cell.textContent.trim();
    return typeof key(text) === "string" && /^[=+\-@]/.test(text) ? `'${text}` : text;
  };
  const enhance = (box) => {
    const table = box.querySelector("table"), body = table.tBodies[0], heads = table.tHead.rows[0].cells;
    const all = Array.from(body.rows, (row) => ({
      row,
      text: row.textContent.toLowerCase(),
      keys: Array.from(row.cells, (cell) => key(cell.textContent.trim())),
    }));
    let rows = all, first = 0, sorted = -1, down = false, shownAll = false;
    const tools = element("div"), status = element("span"), pages = element("span");
    const draw = () => {
      const end = shownAll ? rows.length : Math.min(first + PAGE, rows.length);
      body.replaceChildren(...rows.slice(shownAll ? 0 : first, end).map((one) => one.row));
      status.textContent = rows.length > PAGE
        ? `${first + 1} to ${end} of ${rows.length}` : `${rows.length} of ${all.length}`;
    };
    const compare = (a, b) => {
      const x = a.keys[sorted], y = b.keys[sorted];
      if (typeof x !== typeof y) return typeof x === "number" ? -1 : 1;
      const order = x < y ? -1 : x > y ? 1 : 0;
      return down ? -order : order;
    };
    const arrange = (wanted) => {
      rows = all.filter((one) => one.text.includes(wanted));
      if (sorted >= 0) rows.sort(compare);
      first = 0;
      draw();
    };
    const search = element("input");
    Array.from(heads).forEach((head, column) => {
      if (!head.textContent) return;
      const sort = button();
      sort.append(...head.childNodes);
      head.append(sort);
      sort.addEventListener("click", () => {
        down = sorted === column ? !down : head.classList.contains("n");
        sorted = column;
        for (const other of heads) other.removeAttribute("aria-sort");
        head.setAttribute("aria-sort", down ? "descending" : "ascending");
        arrange(search.value.toLowerCase());
      });
    });
    if (all.length < LONG) return;
    search.type = "search";
    search.placeholder = "Search";
    search.setAttribute("aria-label", `Search the table of each ${box.dataset.name || "row"}`);
    search.addEventListener("input", () => arrange(search.value.toLowerCase()));
    const copy = button("Copy all");
    copy.addEventListener("click", async () => {
      const line = (cells) => Array.from(cells, copied).join("\t");
      const text = [line(heads), ...rows.map((one) => line(one.row.cells))].join("\n");
      try {
        await navigator.clipboard.writeText(text);
        status.textContent = `${rows.length} rows copied`;
      } catch (error) {
        status.textContent = "The browser does not let a page copy here.";
      }
    });
    status.setAttribute("role", "status");
    for (const [name, by] of [["Earlier rows", -PAGE], ["Later rows", PAGE]]) {
      const turn = button(name);
      turn.addEventListener("click", () => {
        if (first + by >= 0 && first + by < rows.length) { first += by; draw(); }
      });
      pages.append(turn);
    }
    pages.hidden = all.length <= PAGE;
    tools.className = "tools";
    tools.append(search, copy, pages, status);
    box.prepend(tools);
    window.addEventListener("beforeprint", () => { shownAll = true; draw(); });
    window.addEventListener("afterprint", () => { shownAll = false; draw(); });
    draw();
  };
  const tell = (figure) => {
    const marks = Array.from(figure.querySelectorAll(".m"));
    if (!marks.length) return;
    const value = element("p", "\u00a0");
    value.className = "value";
    value.setAttribute("aria-hidden", "true"); // a mark's name says the same
    figure.querySelector(".plot").after(value);
    marks[0].setAttribute("tabindex", "0");
    const show = (event) => {
      const mark = event.target.closest(".m");
      if (mark) value.textContent = mark.querySelector("title").textContent;
      return mark;
    };
    figure.addEventListener("mouseover", show);
    figure.addEventListener("focusin", (event) => {
      const mark = show(event);
      if (!mark) return;
      for (const other of marks) other.setAttribute("tabindex", other === mark ? "0" : "-1");
    });
    const last = marks.length - 1;
    const places = {
      ArrowRight: (at) => Math.min(at + 1, last), ArrowDown: (at) => Math.min(at + 1, last),
      ArrowLeft: (at) => Math.max(at - 1, 0), ArrowUp: (at) => Math.max(at - 1, 0),
      Home: () => 0, End: () => last,
    };
    figure.addEventListener("keydown", (event) => {
      const at = marks.indexOf(event.target), place = places[event.key];
      if (at < 0 || !place) return;
      event.preventDefault();
      marks[place(at)].focus();
    });
  };
  const choose = (box) => {
    const views = Array.from(box.children), choices = element("div");
    if (views.length < 2) return;
    choices.className = "tools";
    choices.setAttribute("role", "group");
    choices.setAttribute("aria-label", box.dataset.name);
    const show = (chosen) => views.forEach((view, at) => {
      view.hidden = view !== chosen;
      choices.children[at].setAttribute("aria-pressed", String(view === chosen));
    });
    for (const view of views) {
      const choice = button(view.dataset.name);
      choice.addEventListener("click", () => show(view));
      choices.append(choice);
    }
    box.prepend(choices);
    show(views[0]);
  };
  document.querySelectorAll("div.table").forEach(enhance);
  document.querySelectorAll("figure").forEach(tell);
  document.querySelectorAll("div.switch").forEach(choose);
})();
