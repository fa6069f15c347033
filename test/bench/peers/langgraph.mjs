// A loop of an agent on LangGraph with its SQLite saver: langgraph.mjs <folder> <steps>. Prints JSON.
import { join } from 'node:path';
import { Annotation, END, START, StateGraph } from '@langchain/langgraph';
import { SqliteSaver } from '@langchain/langgraph-checkpoint-sqlite';
import { callMessage, resultMessage } from '../workload.ts';
import { costOf } from './cost.mjs';

const [folder, count] = process.argv.slice(2);
const steps = Number(count);
const saver = SqliteSaver.fromConnString(join(folder, 'langgraph.db'));
const State = Annotation.Root({ messages: Annotation({ reducer: (a, b) => [...a, ...b], default: () => [] }) });
const stepOf = ({ messages }) => Math.floor(messages.length / 2);
const graph = new StateGraph(State)
  .addNode('model', (state) => ({ messages: [callMessage(stepOf(state))] }))
  .addNode('tool', (state) => ({ messages: [resultMessage(stepOf(state))] }))
  .addEdge(START, 'model')
  .addEdge('model', 'tool')
  .addConditionalEdges('tool', (state) => (stepOf(state) < steps ? 'model' : END))
  .compile({ checkpointer: saver });
const cost = await costOf(steps, async () => {
  const config = { configurable: { thread_id: 't' }, recursionLimit: 2 * steps + 5, durability: 'sync' };
  const { messages } = await graph.invoke({ messages: [] }, config);
  if (messages.length !== 2 * steps) throw new Error(`${messages.length} messages`);
});
const journal = saver.db.pragma('journal_mode', { simple: true });
const level = saver.db.pragma('synchronous', { simple: true });
const isSynced = level >= 2 || (level === 1 && journal !== 'wal');
const durable = `a checkpoint after the model and one after the tool, each with the whole transcript, in SQLite before the next node; ${isSynced ? 'synced to the disk' : 'not synced to the disk at each commit'}`;
process.stdout.write(JSON.stringify({ ...cost, durable }));
process.exit();
