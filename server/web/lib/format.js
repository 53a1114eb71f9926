// SPDX-License-Identifier: Apache-2.0
// Numbers with units.  Every function takes a number in the unit its name says.  And texts that are
// too long.

const whole = new Intl.NumberFormat('en', {maximumFractionDigits: 0});

// Three significant digits, without an exponent.
function three(x) {
  const a = Math.abs(x);
  if (a >= 99.95 || a === 0) return whole.format(x);
  return x.toFixed(a >= 9.995 ? 1 : a >= 0.9995 ? 2 : 3);
}

export function count(n) {
  return Number.isFinite(n) ? whole.format(n) : '–';
}

export function number(x) {
  if (!Number.isFinite(x)) return '–';
  if (Number.isInteger(x)) return whole.format(x);
  const a = Math.abs(x);
  if (a >= 1000) return whole.format(x);
  if (a >= 0.001) return three(x);
  return x.toExponential(2);
}

export function us(x) {
  if (!Number.isFinite(x)) return '–';
  const a = Math.abs(x);
  if (a === 0) return '0';
  if (a >= 3600e6) return `${three(x / 3600e6)} h`;
  if (a >= 60e6) return `${Math.floor(x / 60e6)} min ${three((x / 1e6) % 60)} s`;
  // What three digits round up to the next unit is of that unit: not "1,000 µs".
  if (a >= 999.5e3) return `${three(x / 1e6)} s`;
  if (a >= 999.5) return `${three(x / 1e3)} ms`;
  if (a >= 0.9995) return `${three(x)} µs`;
  if (a >= 0.9995e-3) return `${three(x * 1e3)} ns`;
  return `${three(x * 1e6)} ps`;
}

export const ps = (x) => us(x / 1e6);
export const ms = (x) => us(x * 1e3);

// A point in time on an axis that goes to LARGEST and whose marks are STEP apart: one unit for all of them,
// and just enough digits to tell neighbours apart.
export function axisUs(x, step, largest = x) {
  const a = Math.abs(largest);
  const [unit, size] = a >= 1e6 ? ['s', 1e6] : a >= 1e3 ? ['ms', 1e3] : a >= 1 ? ['µs', 1] : ['ns', 1e-3];
  const digits = Math.max(0, Math.min(9, -Math.floor(Math.log10(step / size) + 1e-9)));
  return `${(x / size).toFixed(digits)} ${unit}`;
}

export function bytes(n) {
  if (!Number.isFinite(n)) return '–';
  const a = Math.abs(n);
  if (a < 1024) return `${whole.format(n)} B`;
  if (a < 1024 ** 2) return `${three(n / 1024)} KiB`;
  if (a < 1024 ** 3) return `${three(n / 1024 ** 2)} MiB`;
  if (a < 1024 ** 4) return `${three(n / 1024 ** 3)} GiB`;
  return `${three(n / 1024 ** 4)} TiB`;
}

// Floating-point operations per second.
export function flops(perSecond) {
  const v = perSecond / 1e9;
  if (v >= 1e6) return `${number(v / 1e6)} PFLOP/s`;
  if (v >= 1e3) return `${number(v / 1e3)} TFLOP/s`;
  return v >= 1 || !(v > 0) ? `${number(v)} GFLOP/s` : `${number(v * 1e3)} MFLOP/s`;
}

export function fraction(x) {
  if (!Number.isFinite(x)) return '–';
  const p = x * 100;
  if (p !== 0 && Math.abs(p) < 0.1) return p > 0 ? '<0.1 %' : '>-0.1 %';
  return `${p.toFixed(1)} %`;
}

export function date(unixMs) {
  if (!Number.isFinite(unixMs) || unixMs <= 0) return 'unknown';
  const d = new Date(unixMs);
  const two = (v) => String(v).padStart(2, '0');
  return `${d.getFullYear()}-${two(d.getMonth() + 1)}-${two(d.getDate())} ${two(d.getHours())}:${
      two(d.getMinutes())}`;
}

export function ago(unixMs) {
  const seconds = (Date.now() - unixMs) / 1000;
  if (!Number.isFinite(seconds) || unixMs <= 0) return '';
  const steps = [
    [60, 'second'], [3600, 'minute', 60], [86400, 'hour', 3600], [86400 * 60, 'day', 86400],
    [86400 * 730, 'month', 86400 * 30.4], [Infinity, 'year', 86400 * 365.25]
  ];
  if (seconds < 60) return 'just now';
  for (const [below, word, size] of steps.slice(1)) {
    if (seconds < below) {
      const n = Math.floor(seconds / size);
      return `${n} ${word}${n === 1 ? '' : 's'} ago`;
    }
  }
  return '';
}

// "a", "a and b", "a, b and c", "a, b and 7 others".
export function few(names) {
  if (names.length < 2) return names.join('');
  const last = names.length < 4 ? names[names.length - 1] : `${count(names.length - 2)} others`;
  return `${names.slice(0, Math.min(names.length - 1, 2)).join(', ')} and ${last}`;
}

// At most the first `n` units of a text; never half of a character that has two, as a lone one is no
// text any more, for programs that read the page.
export function cut(text, n) {
  if (text.length <= n) return text;
  const last = text.charCodeAt(n - 1);
  return text.slice(0, last >= 0xd800 && last < 0xdc00 ? n - 1 : n);
}

// The device as people call it, in a text of XProf's.
export const device = (text) => text.replaceAll('CPU_ONLY', 'CPU');

// A C++ name without the arguments of its templates: "f<…>(int)".  An operator's < is none.
export function folded(text) {
  let out = '', depth = 0;
  for (let i = 0; i < text.length; i++) {
    const c = text[i];
    if (c === '<' && !/operator<?$/.test(out) && (depth || /[\w>]$/.test(out))) {
      if (!depth++) out += '<…>';
    } else if (c === '>' && depth && text[i - 1] !== '-')
      depth--;
    else if (!depth)
      out += c;
  }
  return depth ? text : out;
}

// At most N characters: templates folded, then cut in the middle, as the ends of names tell them apart; where there is
// room for a few characters only, these are the first ones.
export function short(text, n) {
  if (text.length <= n) return text;
  if (text.includes('<')) text = folded(text);
  if (text.length <= n) return text;
  if (n < 10) return `${cut(text, Math.max(1, n - 1))}…`;
  const head = cut(text, Math.ceil((n - 1) / 2)), tail = n - 1 - head.length;
  const from = text.length - tail, low = text.charCodeAt(from);
  return `${head}…${text.slice(low >= 0xdc00 && low < 0xe000 ? from + 1 : from)}`;
}
