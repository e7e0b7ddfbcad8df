"use strict";
(() => {
  const SHOWN = 100;
  const tools = document.querySelector(".tools"), table = document.querySelector("table");
  const find = tools.querySelector("input"), outcome = tools.querySelector("select"), status = tools.querySelector("[role=status]");
  const [previous, next] = tools.querySelectorAll("button");
  const heads = [...table.tHead.rows[0].cells], body = table.tBodies[0];
  const text = (row, column) => row.cells[column].textContent;
  const rows = [...body.rows].map((row) => ({ row, text: row.textContent.toLowerCase() }));
  const order = new Intl.Collator(undefined, { numeric: true });
  let sorted = null, descending = false, from = 0, chosen = rows;
  const compare = (a, b) => {
    const x = text(a.row, sorted), y = text(b.row, sorted);
    if (x === "" || y === "") return (x === "") - (y === "");
    const isNumber = !isNaN(x) && !isNaN(y);
    const way = isNumber ? Number(x) - Number(y) : order.compare(x, y);
    return descending ? -way : way;
  };
  const choose = () => {
    const words = find.value.toLowerCase().split(/\s+/).filter(Boolean);
    chosen = rows.filter((line) => {
      if (outcome.value.trim() && text(line.row, 3) !== outcome.value) return false;
      return words.every((word) => line.text.includes(word));
    });
    if (sorted !== null) chosen.sort(compare);
    from = 0;
    draw();
  };
  const draw = () => {
    body.replaceChildren(...chosen.slice(from, from + SHOWN).map((line) => line.row));
    const last = Math.min(from + SHOWN, chosen.length);
    status.textContent = chosen.length ? ` ${from + 1} to ${last} of ${chosen.length} ` : " none ";
    previous.disabled = from === 0;
    next.disabled = last === chosen.length;
  };
  heads.forEach((head, column) => {
    const button = document.createElement("button"), name = head.textContent;
    button.type = "button";
    button.textContent = name;
    button.addEventListener("click", () => {
      descending = sorted === column && !descending;
      sorted = column;
      for (const other of heads) other.removeAttribute("aria-sort");
      head.setAttribute("aria-sort", descending ? "descending" : "ascending");
      choose();
    });
    head.replaceChildren(button);
  });
  previous.addEventListener("click", () => { from -= SHOWN; draw(); });
  next.addEventListener("click", () => { from += SHOWN; draw(); });
  find.addEventListener("input", choose);
  outcome.addEventListener("change", choose);
  tools.hidden = false;
  choose();
})();
