import { render } from 'preact';
import { App } from './app.tsx';
import { startKeys } from './frame/keys.ts';
import { startLive } from './frame/live.ts';
import { takeToken } from './frame/session.ts';
import { startTheme } from './frame/theme.ts';
import { escapeTexts } from './parts/escaped.ts';

const root = document.getElementById('app');
if (root) {
  escapeTexts();
  startTheme();
  await takeToken();
  startKeys();
  startLive();
  render(<App />, root);
}
