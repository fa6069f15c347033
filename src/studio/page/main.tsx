import { options, render } from 'preact';
import { App } from './app.tsx';
import { startKeys } from './frame/keys.ts';
import { startLive } from './frame/live.ts';
import { takeToken } from './frame/session.ts';
import { startTheme } from './frame/theme.ts';
import { escapedHtml } from './parts/escaped.ts';

/** Escapes each text that comes into the page from now on; only attributes are escaped where they are made. */
function escapeTexts(): void {
  // Preact has a vnode for each text, with the text in place of its props.
  options.vnode = (node: { props: unknown }) => {
    if (typeof node.props === 'string') node.props = escapedHtml(node.props);
  };
}

const root = document.getElementById('app');
if (root) {
  escapeTexts();
  startTheme();
  await takeToken();
  startKeys();
  // A view asks for what it shows before the rest is asked for.
  render(<App />, root);
  startLive();
}
