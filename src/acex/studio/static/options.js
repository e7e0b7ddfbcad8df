// Controls generated from the declarations of options that have no special control: a number, a text or a choice.

import { h, newId } from "./dom.js";

export function optionFields(declared, options, changed) {
  const groups = [...new Set(declared.map(option => option.group))];
  return groups.map(group => h("fieldset", { class: "option-group" }, h("legend", {}, group),
    declared.filter(option => option.group === group).map(option => optionField(option, options, changed))));
}

export const isSet = (declared, options) => declared.some(({ name, default: usual }) => (options[name] ?? usual) !== usual);

function optionField({ name, title, help, kind, choices, default: usual }, options, changed) {
  const id = newId(), hint = newId();
  const set = event => {
    const text = event.target.value;
    options[name] = text === "" || text === String(usual) ? null : kind === "text" ? text : Number(text); // null means the default
    changed();
  };
  const control = choices
    ? h("select", { id, name, "aria-describedby": hint, onchange: set }, choices.map(value => h("option", { value, selected: value === (options[name] ?? usual) }, value)))
    : h("input", {
      id, name, "aria-describedby": hint, type: kind === "text" ? "text" : "number", step: kind === "count" ? 1 : "any", min: kind === "count" ? 0 : null,
      value: options[name] ?? "", placeholder: usual === null ? "" : String(usual), autocomplete: "off", onchange: set,
    });
  return h("div", { class: "field" }, h("label", { for: id }, title), control, h("small", { id: hint }, help));
}
