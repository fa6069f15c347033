import { Chat } from './chat.tsx';

/** The address names the chat: a reload, another tab and another computer show the same one. */
export default async function Page({ params }: { params: Promise<{ id: string }> }) {
  const { id } = await params;
  return <Chat id={id} />;
}
