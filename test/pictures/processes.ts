import { arrow, box, cross, line, type Picture, text } from './svg.ts';

export function whoTalks(): Picture {
  return {
    title: 'Who talks to whom',
    description:
      'Your code starts a run at an executor. The executor asks the model and calls your tools. Before and after each of these it writes the record ' +
      'of the run to your database. A person answers in a page, and readers follow events: both through the store, in any process.',
    width: 480,
    height: 330,
    body: [
      box([20, 24], [130, 56], ['your code', '`start`']),
      arrow([150, 52, 178, 52], 'main'),
      box([180, 24], [144, 56], ['the executor', 'in your process'], 'main'),
      arrow([324, 40, 350, 40]),
      arrow([324, 64, 337, 64, 337, 110, 350, 110]),
      box([352, 20], [108, 44], ['the model']),
      box([352, 88], [108, 44], ['your tools']),
      arrow([252, 80, 252, 166], 'main'),
      text([242, 118], 'each step, before', 'small soft', 'end'),
      text([242, 135], 'what comes next', 'small soft', 'end'),
      '<rect class="box good" x="110" y="168" width="260" height="58" rx="8"/>',
      text([240, 192], 'your database', 'bold', 'middle'),
      text([240, 212], 'SQLite, or PostgreSQL', 'small', 'middle'),
      arrow([110, 276, 110, 250, 170, 250, 170, 228]),
      arrow([310, 228, 310, 250, 370, 250, 370, 276]),
      box([20, 278], [180, 36], ['a person answers']),
      box([280, 278], [180, 36], ['readers follow']),
    ],
  };
}

export function lease(): Picture {
  const [a, record, b] = [80, 240, 400] as const;
  return {
    title: 'Two processes and one lease',
    description:
      'Process A has the claim of a run with epoch 1, saves its steps and renews its lease. A dies or hangs. When the lease is over, process B takes ' +
      'the claim with epoch 2 and continues from the record. A late write of A is refused with LEASE_LOST: one process at a time writes a run.',
    width: 480,
    height: 420,
    body: [
      box([a - 60, 20], [120, 38], ['process A'], 'main'),
      box([record - 60, 20], [120, 38], ['the record'], 'good'),
      box([b - 60, 20], [120, 38], ['process B'], 'main'),
      line([a, 58, a, 214], 'main'),
      line([a, 240, a, 372], 'soft', true),
      line([record, 58, record, 400], 'good'),
      line([b, 58, b, 254], 'soft', true),
      line([b, 254, b, 400], 'main'),
      arrow([a, 92, record - 4, 92]),
      text([160, 84], 'claim, epoch 1', 'small', 'middle'),
      arrow([a, 132, record - 4, 132]),
      text([160, 124], 'a step, a renewal', 'small', 'middle'),
      arrow([a, 172, record - 4, 172]),
      text([160, 164], 'a step', 'small', 'middle'),
      cross([a, 224]),
      text([a + 18, 229], 'dies, or hangs', 'small bad bold'),
      text([record + 12, 236], 'its lease is over', 'small warn bold'),
      arrow([b, 262, record + 4, 262]),
      text([322, 280], 'claim, epoch 2', 'small', 'middle'),
      arrow([record + 4, 302, b, 302]),
      text([322, 320], 'what is recorded', 'small', 'middle'),
      arrow([a, 344, record - 4, 344], 'bad', true),
      text([160, 336], 'a late write', 'small', 'middle'),
      text([160, 364], 'LEASE_LOST', 'code bad bold', 'middle'),
      arrow([b, 376, record + 4, 376]),
      text([322, 394], 'the next step', 'small', 'middle'),
    ],
  };
}

export function fleet(): Picture {
  const worker = (x: number) => box([x, 24], [130, 62], ['worker', '`executor.work()`'], 'main');
  return {
    title: 'A fleet on one PostgreSQL',
    description:
      'Several workers call executor.work() and take due runs from one PostgreSQL, each run by one worker at a time. A web process starts runs, answers ' +
      'waits and reads events through the same database. No process talks to another one.',
    width: 480,
    height: 330,
    body: [
      worker(20),
      worker(175),
      worker(330),
      arrow([85, 148, 85, 88], 'main'),
      arrow([240, 148, 240, 88], 'main'),
      arrow([395, 148, 395, 88], 'main'),
      text([97, 122], 'due runs', 'small soft'),
      text([252, 122], 'due runs', 'small soft'),
      text([383, 122], 'due runs', 'small soft', 'end'),
      '<rect class="box good" x="20" y="150" width="440" height="56" rx="8"/>',
      text([240, 174], 'PostgreSQL', 'bold', 'middle'),
      text([240, 194], 'records, claims, waits, events', 'small', 'middle'),
      arrow([110, 252, 110, 208]),
      arrow([370, 208, 370, 252]),
      box([20, 254], [200, 56], ['web process', 'starts runs, answers waits']),
      box([260, 254], [200, 56], ['any process', 'reads events, Studio']),
    ],
  };
}

export function eventLog(): Picture {
  return {
    title: 'The record, the event log, and a reader',
    description:
      'An executor writes the record of a run and its durable events in one commit. Transient events, such as pieces of text, are written beside it ' +
      'and deleted when the message is recorded. A reader in any process gets events after its cursor, and continues there after a cut.',
    width: 480,
    height: 392,
    body: [
      '<rect class="ground" x="20" y="112" width="440" height="152" rx="10"/>',
      box([150, 20], [180, 40], ['the executor'], 'main'),
      line([200, 60, 200, 130], 'main'),
      text([190, 92], 'one commit', 'small', 'end'),
      arrow([300, 60, 300, 186], 'soft', true),
      text([312, 92], 'pieces of text', 'small soft'),
      text([34, 252], 'the store', 'small soft'),
      box([40, 130], [110, 46], ['record'], 'good'),
      arrow([200, 128, 200, 153, 152, 153], 'main'),
      arrow([200, 128, 200, 186], 'main'),
      ...['1', '2', '3', '4', '5'].map((n, at) =>
        box([170 + at * 38, 188], [34, 34], [n], at < 3 ? 'good' : undefined),
      ),
      text([366, 210], 'event log', 'bold'),
      text([226, 242], 'durable', 'small good', 'middle'),
      text([322, 242], 'transient', 'small soft', 'middle'),
      arrow([240, 264, 240, 316], 'main'),
      text([252, 296], 'events after its cursor', 'small'),
      box([110, 318], [260, 54], ['a reader, in any process', 'cut? it continues after its cursor'], 'main'),
    ],
  };
}
