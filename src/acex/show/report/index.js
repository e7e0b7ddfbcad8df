
"use strict";
(() => {
  const SHOWN = 100, LONGEST = 18;
  const NAMES = ["id", "explanation", "model", "outcome", "changes", "cost", "queries"];
  const lines = JSON.parse(document.querySelector("script[type='application/json']").textContent);
  const tools = document.querySelector(".tools"), place = document.querySelector(".wide");
  const find = tools.querySelector("input"), outcome = tools.querySelector("select"), status = tools.querySelector("span");
  const [earlier, later] = tools.querySelectorAll("button");
  let sorted = null, falls = false, from = 0, chosen = lines;
  const make = (name, text) => {
    const made = document.createElement(name);
    if (text !== undefined && text !== null) made.textContent = String(text);
    return made;
  };
  const order = new Intl.Collator(undefined, { numeric: true });
  const compare = (a, b) => {
    const x = a[sorted], y = b[sorted];
    if (x === null || y === null) return (x === null) - (y === null);
    const way = typeof x === "number" && typeof y === "number" ? x - y : order.compare(String(x), String(y));
    return falls ? -way : way;
  };
  const choose = () => {
    const words = find.value.toLowerCase().split(/\s+/).filter(Boolean);
    chosen = lines.filter((line) => {
      if (outcome.value.trim() && line.outcome !== outcome.value) return false;
      const text = [line.id, line.explanation, line.model, line.outcome].join(" ").toLowerCase();
      return words.every((word) => text.includes(word));
    });
    if (sorted !== null) chosen = [...chosen].sort(compare);
    from = 0;
    draw();
  };
  const row = (line) => {
    const made = make("tr");
    for (const name of NAMES) {
      const cell = make(name === "id" ? "th" : "td");
      if (name === "explanation") {
        const link = make("a", line[name]);
        link.href = line.address;
        cell.append(link);
      } else if (name === "model" && line.model.length > LONGEST) {
        const short = make("span", line.model.slice(0, LONGEST - 1) + "…");
        short.title = line.model;
        cell.append(short);
      } else {
        cell.textContent = line[name] === null ? "" : String(line[name]);
      }
      made.append(cell);
    }
    return made;
  };
  const draw = () => {
    const table = make("table"), head = make("tr"), body = make("tbody");
    table.className = "lines";
    for (const name of NAMES) {
      const cell = make("th"), button = make("button", name + (sorted === name ? (falls ? " ↓" : " ↑") : ""));
      cell.scope = "col";
      if (sorted === name) cell.setAttribute("aria-sort", falls ? "descending" : "ascending");
      button.type = "button";
      button.addEventListener("click", () => {
        falls = sorted === name && !falls;
        sorted = name;
        choose();
      });
      cell.append(button);
      head.append(cell);
    }
    for (const line of chosen.slice(from, from + SHOWN)) body.append(row(line));
    const top = make("thead");
    top.append(head);
    table.append(top, body);
    place.replaceChildren(table);
    const last = Math.min(from + SHOWN, chosen.length);
    status.textContent = chosen.length ? ` ${from + 1} to ${last} of ${chosen.length} ` : " none ";
    earlier.disabled = from === 0;
    later.disabled = last === chosen.length;
  };
  earlier.addEventListener("click", () => { from -= SHOWN; draw(); });
  later.addEventListener("click", () => { from += SHOWN; draw(); });
  find.addEventListener("input", choose);
  outcome.addEventListener("change", choose);
  tools.hidden = false;
  choose();
})();
