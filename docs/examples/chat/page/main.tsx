import { createRoot } from 'react-dom/client';
import { Chat } from './chat.tsx';
import { loadMessages } from './history.ts';

const address = new URL(location.href);
// The address names the conversation: a reload, another tab and another machine show the same one.
if (!address.searchParams.has('chat')) {
  address.searchParams.set('chat', Math.random().toString(36).slice(2));
  history.replaceState(null, '', address);
}
const id = address.searchParams.get('chat') ?? '';
const root = document.getElementById('page');
if (root)
  createRoot(root).render(
    <Chat id={id} recorded={await loadMessages(id)} isStock={address.searchParams.has('stock')} />,
  );
