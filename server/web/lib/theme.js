// Light, dark, or as the system says.

import {h} from './dom.js';

const NEXT = {
  auto: 'dark',
  dark: 'light',
  light: 'auto'
};
const WORDS = {
  auto: 'Theme: system',
  dark: 'Theme: dark',
  light: 'Theme: light'
};
const SIGN = {
  auto: '◐',
  dark: '☾',
  light: '☀'
};

function stored() {
  try {
    return NEXT[localStorage.getItem('xplaned-theme')] ? localStorage.getItem('xplaned-theme') : 'auto';
  } catch {
    return 'auto';
  }
}

function apply(name) {
  if (name === 'auto')
    delete document.documentElement.dataset.theme;
  else
    document.documentElement.dataset.theme = name;
  dispatchEvent(new Event('themechange'));  // canvases draw their colours anew
}

export function start() {
  apply(stored());
  matchMedia('(prefers-color-scheme: dark)')
      .addEventListener('change', () => dispatchEvent(new Event('themechange')));
}

export function button() {
  let name = stored();
  const b = h('button', {
    type: 'button',
    class: 'theme',
    onclick: () => {
      name = NEXT[name];
      try {
        localStorage.setItem('xplaned-theme', name);
      } catch { /* private window: for this page only */
      }
      apply(name);
      show();
    },
  });
  const show = () => {
    b.textContent = SIGN[name];
    b.title = WORDS[name];
    b.setAttribute('aria-label', WORDS[name]);
  };
  show();
  return b;
}

export function isDark() {
  const t = document.documentElement.dataset.theme;
  return t ? t === 'dark' : matchMedia('(prefers-color-scheme: dark)').matches;
}
