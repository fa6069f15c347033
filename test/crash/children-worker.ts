// One process of a host with a tree of runs, to be killed: node -C pawl-source children-worker.ts '<job as JSON>'
import { type ChildrenJob, treeLife } from './children-life.ts';

await treeLife(JSON.parse(process.argv[2] ?? '') as ChildrenJob, (line) => void process.stdout.write(line));
