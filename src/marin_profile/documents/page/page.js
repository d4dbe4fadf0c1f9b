"use strict";
// Tables sort by a click on a header; long ones are paged, searched and copied over all rows.
(() => {
  const PAGE = 50, LONG = 12;
  const element = (tag, text) => {
    const made = document.createElement(tag);
    if (text !== undefined) made.textContent = text;
    return made;
  };
  const enhance = (box) => {
    const table = box.querySelector("table"), body = table.tBodies[0];
    const all = Array.from(body.rows, (row) => ({
      row,
      text: row.textContent.toLowerCase(),
      keys: Array.from(row.cells, (cell) =>
        cell.dataset.v === undefined ? cell.textContent.toLowerCase() : Number(cell.dataset.v)),
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
    Array.from(table.tHead.rows[0].cells).forEach((head, column) => {
      const button = element("button");
      button.type = "button";
      button.append(...head.childNodes);
      head.append(button);
      button.addEventListener("click", () => {
        down = sorted === column ? !down : head.classList.contains("n");
        sorted = column;
        for (const other of table.tHead.rows[0].cells) other.removeAttribute("aria-sort");
        head.setAttribute("aria-sort", down ? "descending" : "ascending");
        arrange(search.value.toLowerCase());
      });
    });
    if (all.length < LONG) return;
    search.type = "search";
    search.placeholder = "Search";
    search.setAttribute("aria-label", `Search the table of each ${box.dataset.name || "row"}`);
    search.addEventListener("input", () => arrange(search.value.toLowerCase()));
    const copy = element("button", "Copy all");
    copy.type = "button";
    copy.addEventListener("click", async () => {
      const line = (cells) => Array.from(cells, (cell) => cell.textContent.trim()).join("\t");
      const text = [line(table.tHead.rows[0].cells), ...rows.map((one) => line(one.row.cells))].join("\n");
      try {
        await navigator.clipboard.writeText(text);
        status.textContent = `${rows.length} rows copied`;
      } catch (error) {
        status.textContent = "The browser does not let a page copy here.";
      }
    });
    status.setAttribute("role", "status");
    for (const [name, by] of [["Earlier rows", -PAGE], ["Later rows", PAGE]]) {
      const button = element("button", name);
      button.type = "button";
      button.addEventListener("click", () => {
        if (first + by >= 0 && first + by < rows.length) { first += by; draw(); }
      });
      pages.append(button);
    }
    pages.hidden = all.length <= PAGE;
    tools.className = "tools";
    tools.append(search, copy, pages, status);
    box.prepend(tools);
    window.addEventListener("beforeprint", () => { shownAll = true; draw(); });
    window.addEventListener("afterprint", () => { shownAll = false; draw(); });
    draw();
  };
  document.querySelectorAll("div.table").forEach(enhance);
})();
