// SPDX-License-Identifier: Apache-2.0
// Building elements.  Text is always a text node: names in a profile are hostile and never become HTML.

const SVG = 'http://www.w3.org/2000/svg';

function fill(element, props, children) {
  for (const [key, value] of Object.entries(props || {})) {
    if (value === undefined || value === null || value === false) continue;
    if (key === 'class')
      element.setAttribute('class', value);
    else if (key === 'vars')
      for (const [k, v] of Object.entries(value)) element.style.setProperty(k, v);
    else if (key.startsWith('on'))
      element.addEventListener(key.slice(2), value);
    else if (key in element && typeof value !== 'string')
      element[key] = value;
    else
      element.setAttribute(key, value === true ? '' : String(value));
  }
  element.append(...children.flat(Infinity).filter((c) => c !== null && c !== undefined && c !== false));
  return element;
}

// h('td', {class: 'num', title: text}, child, 'text', [more]): an HTML element.
export function h(tag, props, ...children) {
  return fill(document.createElement(tag), props, children);
}

// The same for SVG.
export function s(tag, props, ...children) {
  const element = document.createElementNS(SVG, tag);
  for (const [key, value] of Object.entries(props || {})) {
    if (value === undefined || value === null || value === false) continue;
    if (key.startsWith('on'))
      element.addEventListener(key.slice(2), value);
    else
      element.setAttribute(key, String(value));
  }
  element.append(...children.flat(Infinity).filter((c) => c !== null && c !== undefined && c !== false));
  return element;
}

// Tells a screen reader what just changed.
export function announce(text) {
  const live = document.getElementById('live');
  if (live && live.textContent !== text) live.textContent = text;
}

export function debounce(ms, fn) {
  let timer = 0;
  return (...args) => {
    clearTimeout(timer);
    timer = setTimeout(() => fn(...args), ms);
  };
}

// Calls fn at most every MS, and once more after the last call.
export function every(ms, fn) {
  let timer = 0;
  return () => {
    timer ||= setTimeout(() => {
      timer = 0;
      fn();
    }, ms);
  };
}

// A text in which a tool may have put a link or a <div> around the words: the words, and the address where
// it is http(s).  Any other markup stays as the text it is; nothing is ever parsed as HTML.
export function plain(text) {
  const link = /<a\s[^<>]*?href=["']([^"']*)["'][^<>]*>([^<>]*)<\/a>/g;
  const first = link.exec(text);
  const words = text.replace(link, '$2').replace(/^<div [^<>]*>([^<>]*)<\/div>$/, '$1');
  const href = first && /^https?:\/\//.test(first[1]) ? first[1] : null;
  return {text: words, href};
}

// A name that breaks behind its separators alone, where it must.
export const breaking = (name) => name.split(/(?<=[/_.-])/).flatMap((part, i) => [i ? document.createElement('wbr') : '', part]);

// Offers TEXT as a download.
export function download(name, type, parts) {
  const url = URL.createObjectURL(new Blob(parts, {type}));
  const a = h('a', {href: url, download: name});
  document.body.append(a);
  a.click();
  a.remove();
  setTimeout(() => URL.revokeObjectURL(url), 10000);
}
