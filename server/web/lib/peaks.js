// SPDX-License-Identifier: Apache-2.0
// What a core of a CPU could do, which no profile tells: the reader says it, the address keeps it, and the daemon
// counts with it (docs/cpu-as-device.md).

import {h} from './dom.js';

const FIELDS = [['cpu_core_gflops', 'Operations', 'GFLOP/s'], ['cpu_core_gb_s', 'Main memory', 'GB/s']];

const inAddress = (ctx, key) => (ctx.params.get(key) || '').trim();

const isPeak = (text) => text === '' || /^(\d+\.?\d*|\.\d+)(e[+-]?\d+)?$/i.test(text) && Number.isFinite(Number(text));

// Options of a tool by the address.  What is no number there is left out: the form says so, where it can be mended.
export const peaks = (ctx) => Object.fromEntries(FIELDS.map(([key]) => [key, inAddress(ctx, key)]).filter(([, text]) => text && isPeak(text)));

// Whether the answer is of a CPU that counts as a device: for others the daemon has no use of the options.
export const isCpu = (table) => table.props.device_type === 'CPU';

// A field counts once the reader leaves it or presses Enter; what is no number stays in it, and is said.
function field(ctx, [key, label, unit]) {
  const old = inAddress(ctx, key);
  const input = h('input', {id: key, type: 'text', inputmode: 'decimal', size: '8', autocomplete: 'off', placeholder: 'unknown', value: old});
  const judge = () => {
    const good = isPeak(input.value.trim());
    input.setCustomValidity(good ? '' : `Enter a number of ${unit}, or leave it empty if it is unknown.`);
    input.setAttribute('aria-invalid', String(!good));
    return good;
  };
  const done = () => {
    const text = input.value.trim();
    if (!judge())
      input.reportValidity();
    else if (text !== old)
      ctx.update({[key]: Number(text) > 0 ? text : ''}, true);
  };
  input.addEventListener('change', done);
  judge();
  return h('label', {}, `${label} `, input, ` ${unit}`);
}

export function peaksForm(ctx) {
  const wrong = FIELDS.filter(([key]) => !isPeak(inAddress(ctx, key)));
  return h('form', {class: 'card peaks', 'aria-label': 'Peaks of a core', onsubmit: (e) => e.preventDefault()},
      h('h2', {}, 'Peak rates of one core'), h('div', {class: 'bar'}, FIELDS.map((f) => field(ctx, f))),
      wrong.map(([key, label, unit]) => h('p', {class: 'note', role: 'alert'}, `${label}: “${inAddress(ctx, key)}” is not a number of ${unit}, so it is ignored.`)),
      h('p', {class: 'muted small'},
          'Profiles do not record a CPU’s peak rates. Enter them to see utilization and what limits each op. ',
          'Times are of threads, so enter the rates of one core; for memory, its share of the bandwidth while all cores work.'));
}
