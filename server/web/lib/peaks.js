// SPDX-License-Identifier: Apache-2.0
// What a core of a CPU could do, which no profile tells: the reader says it, the address keeps it, and the daemon
// counts with it (docs/cpu-as-device.md).

import {h} from './dom.js';

const FIELDS = [['cpu_core_gflops', 'Operations', 'GFLOP/s'], ['cpu_core_gb_s', 'Main memory', 'GB/s']];

// Options of a tool by the address.
export const peaks = (ctx) => Object.fromEntries(FIELDS.map(([key]) => [key, ctx.params.get(key)]));

// Whether the answer is of a CPU that counts as a device: for others the daemon has no use of the options.
export const isCpu = (table) => table.props.device_type === 'CPU';

// A field counts once the reader leaves it or presses Enter; what is no number stays in it, and is said.
function field(ctx, [key, label, unit]) {
  const old = ctx.params.get(key) || '';
  const input = h('input', {id: key, type: 'text', inputmode: 'decimal', size: '8', autocomplete: 'off', placeholder: 'unknown', value: old});
  const done = () => {
    const text = input.value.trim(), good = text === '' || /^(\d+\.?\d*|\.\d+)(e[+-]?\d+)?$/i.test(text) && Number.isFinite(Number(text));
    input.setCustomValidity(good ? '' : `Write a number of ${unit}, or nothing where it is not known.`);
    input.setAttribute('aria-invalid', String(!good));
    if (!good)
      input.reportValidity();
    else if (text !== old)
      ctx.update({[key]: Number(text) > 0 ? text : ''}, true);
  };
  input.addEventListener('change', done);
  return h('label', {}, `${label} `, input, ` ${unit}`);
}

export function peaksForm(ctx) {
  return h('form', {class: 'card peaks', 'aria-label': 'Peaks of a core', onsubmit: (e) => e.preventDefault()},
      h('h2', {}, 'What one core could do'), h('div', {class: 'bar'}, FIELDS.map((f) => field(ctx, f))),
      h('p', {class: 'muted small'},
          'A profile does not tell what a CPU could do. With these there are shares of the peaks, and what limits an op. ',
          'Times are those of threads, so peaks are those of one core; of memory its part beside the others at work.'));
}
