// Chats, runs, answers: `GET /api/openapi.json` describes them.
import { handler } from '../../../runs.ts';

const answer = (request: Request) => handler(request);

export { answer as DELETE, answer as GET, answer as POST };
