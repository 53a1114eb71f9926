// SPDX-License-Identifier: Apache-2.0
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
const MEDIA = {  // in which dark.css applies
  auto: '(prefers-color-scheme: dark)',
  dark: 'all',
  light: 'not all'
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

const sheet = document.getElementById('dark');
const tell = () => dispatchEvent(new Event('themechange'));  // canvases draw their colours anew

function apply(name) {
  sheet.media = MEDIA[name];
  tell();
}

export function start() {
  apply(stored());
  sheet.addEventListener('load', tell);  // what does not apply may come late
  matchMedia(MEDIA.auto).addEventListener('change', tell);
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
