import { redirect } from 'next/navigation';

export const dynamic = 'force-dynamic'; // each visit is a chat of its own

export default function Page() {
  redirect(`/chat/${crypto.randomUUID()}`);
}
