import { createRoot } from 'react-dom/client';
import { Chat } from './chat.tsx';

const address = new URL(location.href);
// The address names the conversation: a reload, another tab and another machine show the same one.
if (!address.searchParams.has('chat')) {
  address.searchParams.set('chat', Math.random().toString(36).slice(2));
  history.replaceState(null, '', address);
}
const root = document.getElementById('page');
if (root)
  createRoot(root).render(
    <Chat id={address.searchParams.get('chat') ?? ''} isStock={address.searchParams.has('stock')} />,
  );
