import { createExecutor, type Person, type ToolDefinition } from 'pawl';
import { callTool, callTools, reply, scriptedModel, testClock } from 'pawl/testing';
import { describe, expect, test } from 'vitest';
import { type DeskOptions, deskOf, notedStore, refundTool, waitsIn, waitsOf } from '../../fixtures/approval-desk.ts';
import { gate, settle, toolOf } from '../../fixtures/host.ts';

const ada: Person = { id: 'ada' };
const bob: Person = { id: 'bob' };
type Approval = NonNullable<ToolDefinition<unknown, unknown>['approval']>;

/** A desk whose run waits for an approval. */
async function waiting(approval: Approval = {}, options: DeskOptions = {}) {
  const desk = deskOf({ rules: { needsApproval: true, approval }, ...options });
  const begun = await desk.begin();
  return { ...desk, ...begun, id: begun.wait().id };
}

/** Another process on the same store, which only controls: it knows no agent. */
function office({ clock, noted }: Awaited<ReturnType<typeof waiting>>) {
  return createExecutor({ models: { fast: scriptedModel([]) }, store: noted.store, clock });
}

/** Another process on the same store, which continues the run. */
function others(desk: Awaited<ReturnType<typeof waiting>>, options: DeskOptions = {}) {
  return deskOf({ clock: desk.clock, noted: desk.noted, script: [reply('done')], ...options });
}

const codeOf = (promise: Promise<unknown>) =>
  promise.then(String, (error: { code?: string; name: string }) => error.code ?? error.name);

describe('an approval', () => {
  test.for(['read', 'idempotent', 'once'] as const)(
    'and the intent of its call are one save, and the tool (%s) starts when that has landed (waiting 4)',
    async (effect) => {
      const desk = await waiting({}, { rules: { needsApproval: true, effect } });
      const door = gate();
      const held: unknown[] = [];
      for (const method of ['save', 'append'] as const)
        desk.noted.rule(method, async (call, ...args) => {
          held.push(args);
          await door.pass();
          return call();
        });
      const approved = desk.control.approve(desk.id, { by: ada, note: 'fine' });
      await door.reached;
      await settle();
      expect(desk.paid).toEqual([]);
      expect(held).toHaveLength(1);
      const saved = JSON.stringify(held[0]);
      expect(saved).toContain('"state":"started"');
      expect(saved).toContain('"allowed":{"by":[{"id":"ada"}]');
      expect(saved).toContain('"how":"approve"');
      expect(saved).not.toContain('"state":"waiting"');
      door.open();
      expect(await approved).toBe('recorded');
      expect((await desk.run.result).status).toBe('ok');
      expect(desk.paid).toEqual([700]);
    },
  );

  test.for([
    ['one person', 1],
    ['a quorum', 2],
  ] as const)(
    'of %s keeps its notes in events and record, and the model reads none (waiting 7)',
    async ([, quorum]) => {
      const desk = await waiting({ quorum, editable: true });
      const persons = [ada, bob].slice(0, quorum);
      const notes = persons.map(({ id }) => ({ by: { id }, note: `${id} rang the customer` }));
      for (const { by, note } of notes) await desk.control.approve(desk.id, { by, note });
      expect((await desk.run.result).status).toBe('ok');
      expect(desk.paid).toEqual([700]);
      expect(desk.seen.filter(({ type }) => type === 'wait.answered')).toMatchObject(notes);
      const saved = desk.noted.of('save', 'append').map(({ args }) => JSON.stringify(args));
      const settled = saved.findLast((text) => text.includes('"settled":[{')) ?? '';
      for (const { note } of notes) expect(settled).toContain(`"note":"${note}"`);
      expect(JSON.stringify(desk.model.calls)).not.toContain('rang the customer');
    },
  );

  test.for(['deny', 'expire'] as const)(
    'that ends with %s starts nothing, and the model reads execution-denied (waiting 4)',
    async (how) => {
      const desk = await waiting({ expiresInMs: 10_000 }, { defaults: { waitLingerMs: 600_000 } });
      if (how === 'deny') await desk.control.deny(desk.id, { by: ada, reason: 'not this month' });
      else await desk.clock.advance(10_000);
      expect((await desk.run.result).status).toBe('ok');
      expect(desk.paid).toEqual([]);
      const reason = how === 'deny' ? 'not this month' : 'No person decided in time.';
      const output = { type: 'execution-denied', reason };
      expect(desk.model.calls.at(-1)?.messages.at(-1)?.content).toMatchObject([{ toolCallId: 'c1', output }]);
      const done = desk.seen.filter(({ type }) => type === 'tool.done');
      expect(done).toMatchObject([{ callId: 'c1', output, ms: 0 }]);
    },
  );

  test('is for one tool, input and version: a deploy with another version asks again, and runs nothing (waiting 5)', async () => {
    const first = await waiting({}, { version: '1' });
    await first.linger();
    await first.executor.shutdown();
    const next = deskOf({
      clock: first.clock,
      noted: first.noted,
      version: '2',
      script: [reply('done')],
      rules: { needsApproval: true, approval: { quorum: 2 } },
    });
    expect(await next.executor.control('r').approve(first.id, { by: ada })).toBe('pending');
    const { run, seen, wait } = await next.begin();
    expect(next.paid).toEqual([]);
    expect(wait().id).not.toBe(first.id);
    expect(wait()).toMatchObject({ quorum: 2, votes: [], tool: 'refund' });
    expect(seen.flatMap((event) => (event.type.startsWith('wait.') ? [event] : []))).toMatchObject([
      { type: 'wait.withdrawn', waitId: first.id },
      { type: 'wait.opened', wait: { id: wait().id } },
      { type: 'wait.refused', code: 'WAIT_GONE' },
    ]);
    await next.executor.control('r').approve(wait().id, { by: ada });
    await next.executor.control('r').approve(wait().id, { by: bob });
    expect((await run.result).status).toBe('ok');
    expect(next.paid).toEqual([700]);
  });

  test('with the digest of another input is refused, here and from another process, and the wait stays open (waiting 5)', async () => {
    const desk = await waiting();
    const digest = '0'.repeat(64);
    expect(await codeOf(desk.control.approve(desk.id, { by: ada, digest }))).toBe('ANSWER_REFUSED');
    expect(await codeOf(office(desk).control('r').approve(desk.id, { by: ada, digest }))).toBe('ANSWER_REFUSED');
    expect(desk.wait().id).toBe(desk.id);
    expect(await desk.control.approve(desk.id, { by: ada, digest: desk.wait().digest })).toBe('recorded');
  });
});

describe('a changed input', () => {
  const editable = { editable: true };

  test.for<[string, Approval, unknown, DeskOptions]>([
    ['of a tool whose input may not be changed', {}, { cents: 5 }, {}],
    ['that does not fit the schema', editable, { cents: 'five' }, {}],
    ['that is no object', editable, 'five', {}],
    ['with a key that could reach a prototype', editable, JSON.parse('{"cents":5,"__proto__":{}}'), {}],
    [
      'that the policy denies',
      editable,
      { cents: 5 },
      { approvals: ({ input }) => (JSON.stringify(input) === '{"cents":5}' ? { deny: 'no' } : 'ask') },
    ],
    [
      'that the tool itself denies',
      editable,
      { cents: 5 },
      {
        rules: {
          needsApproval: (({ cents }: { cents: number }) => (cents === 5 ? { deny: 'no' } : true)) as never,
          approval: editable,
        },
      },
    ],
  ])('%s is refused, and the wait stays open (waiting 6)', async ([, approval, input, options]) => {
    const desk = await waiting(approval, options);
    expect(await codeOf(desk.control.approve(desk.id, { by: ada, input: input as never }))).toBe('ANSWER_REFUSED');
    expect(desk.wait()).toMatchObject({ id: desk.id, votes: [] });
    expect(desk.seen.at(-1)).toMatchObject({ type: 'wait.refused', waitId: desk.id, code: 'ANSWER_REFUSED' });
    expect(await desk.control.approve(desk.id, { by: ada })).toBe('recorded');
    await desk.run.result;
    expect(desk.paid).toEqual([700]);
  });

  test.for<[string, NonNullable<DeskOptions['approvals']>]>([
    ['ask', () => 'ask'],
    [
      'a throw',
      () => {
        throw new Error('broken');
      },
    ],
    ['no verdict', () => null as never],
  ])('passes a policy that answers %s: only deny refuses it (waiting 6)', async ([, approvals]) => {
    const desk = await waiting({ editable: true }, { approvals });
    expect(await desk.control.approve(desk.id, { by: ada, input: { cents: 5 } })).toBe('recorded');
    await desk.run.result;
    expect(desk.paid).toEqual([5]);
  });

  const sentence = 'A person changed the input before it ran: {"n":2}. Do not repeat the original.';
  test.for<[string, () => unknown, unknown]>([
    ['text', () => 'ok', { type: 'text', value: `${sentence}\nok` }],
    ['json', () => ({ a: 1 }), { type: 'text', value: `${sentence}\n{"a":1}` }],
    [
      'an error',
      () => {
        throw new Error('no');
      },
      { type: 'error-text', value: `${sentence}\nno` },
    ],
  ])(
    'runs in place of the original, and the result %s begins with it; the message of the model stays (waiting 6)',
    async ([, execute, output]) => {
      const seen: unknown[] = [];
      const change = {
        ...toolOf('change', 'read', (input) => {
          seen.push(input);
          return execute();
        }),
        needsApproval: true,
        approval: { editable: true },
      };
      const desk = deskOf({ tools: [change as never], script: [callTool('change', { n: 1 }, 'c1'), reply('done')] });
      const { control, run, wait } = await desk.begin();
      await control.approve(wait().id, { by: ada, input: { n: 2 } });
      await run.result;
      expect(seen).toEqual([{ n: 2 }]);
      const [assistant, results] = desk.model.calls.at(-1)?.messages.slice(-2) ?? [];
      expect(assistant?.content).toMatchObject([
        { type: 'tool-call', toolCallId: 'c1', toolName: 'change', input: { n: 1 } },
      ]);
      expect(results?.content).toMatchObject([{ toolCallId: 'c1', toolName: 'change', output }]);
    },
  );

  test('equal to the original is no change: the result is as the tool returned it (waiting 6)', async () => {
    const desk = await waiting({ editable: true });
    await desk.control.approve(desk.id, { by: ada, input: { cents: 700 } });
    await desk.run.result;
    expect(JSON.stringify(desk.model.calls.at(-1)?.messages)).not.toContain('changed the input');
  });
});

describe('a quorum', () => {
  test('counts persons with different ids, and one who votes twice counts once (waiting 7)', async () => {
    const desk = await waiting({ quorum: 2 });
    expect(await desk.control.approve(desk.id, { by: ada })).toBe('recorded');
    expect(await desk.control.approve(desk.id, { by: { id: 'ada', name: 'Ada again' } })).toBe('recorded');
    expect(desk.wait().votes).toMatchObject([{ by: ada }]);
    expect(desk.paid).toEqual([]);
    expect(desk.seen.filter(({ type }) => type === 'wait.answered')).toMatchObject([
      { how: 'approve', by: ada, votes: 1 },
    ]);
    await desk.control.approve(desk.id, { by: bob });
    await desk.run.result;
    expect(desk.paid).toEqual([700]);
  });

  test('ends with one denial (waiting 7)', async () => {
    const desk = await waiting({ quorum: 3 });
    await desk.control.approve(desk.id, { by: ada });
    await desk.control.deny(desk.id, { by: bob });
    expect((await desk.run.result).status).toBe('ok');
    expect(desk.paid).toEqual([]);
  });

  test('loses its other votes with a changed input, and a vote that was sent for the earlier input does not count (waiting 7)', async () => {
    const desk = await waiting({ quorum: 2, editable: true });
    const before = desk.wait().digest;
    await desk.control.approve(desk.id, { by: ada });
    await desk.control.approve(desk.id, { by: bob, input: { cents: 5 } });
    expect(desk.wait()).toMatchObject({ votes: [{ by: bob }], input: { cents: 5 } });
    expect(await codeOf(desk.control.approve(desk.id, { by: ada, digest: before }))).toBe('ANSWER_REFUSED');
    await desk.control.approve(desk.id, { by: ada });
    await desk.run.result;
    expect(desk.paid).toEqual([5]);
  });

  test('a person whose vote was dropped may vote again from another process, although that person approved before (waiting 7, 10)', async () => {
    const desk = await waiting({ quorum: 2, editable: true }, { defaults: { waitLingerMs: 600_000 } });
    const remote = office(desk).control('r');
    await remote.approve(desk.id, { by: ada });
    await desk.clock.advance(500);
    await settle();
    await remote.approve(desk.id, { by: bob, input: { cents: 5 } });
    await desk.clock.advance(500);
    await settle();
    expect(desk.wait().votes).toMatchObject([{ by: bob }]);
    await remote.approve(desk.id, { by: ada });
    await desk.clock.advance(500);
    await settle();
    expect(desk.paid).toEqual([5]);
  });

  test('of persons who all send the same change needs no other round (waiting 7)', async () => {
    const desk = await waiting({ quorum: 2, editable: true });
    for (const by of [ada, bob]) await desk.control.approve(desk.id, { by, input: { cents: 5 } });
    await desk.run.result;
    expect(desk.paid).toEqual([5]);
  });

  test('of 100 takes 100 votes, and the 101st person comes too late (waiting 7)', async () => {
    const desk = await waiting({ quorum: 100 });
    for (let n = 1; n <= 100; n++) await desk.control.approve(desk.id, { by: { id: `p${n}` } });
    await desk.run.result;
    expect(desk.paid).toEqual([700]);
    expect(await codeOf(desk.control.approve(desk.id, { by: { id: 'p101' } }))).toBe('WAIT_GONE');
  });

  test.for(['approve', 'deny'] as const)(
    'needs a person for %s, and so does a tool with approvers: a TypeError where it is sent (waiting 7)',
    async (how) => {
      for (const approval of [{ quorum: 2 }, { approvers: () => true as const }]) {
        const desk = await waiting(approval);
        await expect(desk.control[how](desk.id)).rejects.toThrow(TypeError);
        await expect(desk.control[how](desk.id, { by: { id: '' } })).rejects.toThrow(TypeError);
        await expect(
          others(desk, { rules: { needsApproval: true, approval } })
            .executor.control('r')
            [how](desk.id),
        ).rejects.toThrow(TypeError);
        expect(desk.wait().id).toBe(desk.id);
      }
    },
  );

  test.for<[string, unknown]>([
    ['text', 'ada'],
    ['null', null],
    ['no id', { name: 'Ada' }],
    ['an id of 257 characters', { id: 'a'.repeat(257) }],
    ['a name that is no text', { id: 'a', name: 5 }],
  ])('a person that is %s is a TypeError (waiting 7)', async ([, by]) => {
    const desk = await waiting();
    await expect(desk.control.approve(desk.id, { by: by as Person })).rejects.toThrow(TypeError);
  });
});

describe('approvers', () => {
  test('are asked by the owner of the run with wait, person and the input that would run (waiting 7)', async () => {
    const asked: unknown[] = [];
    const approvers: Approval['approvers'] = (check) => {
      asked.push(check);
      return check.by.id === 'ada' || { refused: 'only ada may' };
    };
    const desk = await waiting({ approvers, editable: true });
    const remote = office(desk).control('r');
    expect(await remote.approve(desk.id, { by: bob, input: { cents: 5 } })).toBe('pending');
    await desk.clock.advance(500);
    await settle();
    expect(asked).toMatchObject([{ by: bob, input: { cents: 5 }, wait: { id: desk.id } }]);
    expect(desk.wait().id).toBe(desk.id);
    expect(desk.seen.at(-1)).toMatchObject({
      type: 'wait.refused',
      code: 'ANSWER_REFUSED',
      reason: 'only ada may',
      by: bob,
    });
    expect(await desk.executor.control('r').unread()).toBe(0);
    await desk.control.approve(desk.id, { by: ada });
    await desk.run.result;
    expect(desk.paid).toEqual([700]);
  });

  test.for<[string, () => unknown]>([
    [
      'throw',
      () => {
        throw new Error('no');
      },
    ],
    ['reject', () => Promise.reject(new Error('no'))],
    ['return something else', () => 'true'],
    [
      'return a proxy that throws',
      () =>
        new Proxy(
          {},
          {
            get: () => {
              throw new Error('no');
            },
            has: () => {
              throw new Error('no');
            },
          },
        ),
    ],
    ['do not answer', () => new Promise(() => {})],
  ])('that %s refuse, and the wait stays open (waiting 7)', async ([, approvers]) => {
    const desk = await waiting({ approvers: approvers as never });
    const answer = codeOf(desk.control.approve(desk.id, { by: ada }));
    // Within the linger time the run asks its inbox, and may not leave while the answer is checked.
    await desk.clock.advance(60_000);
    await settle();
    expect(await answer).toBe('ANSWER_REFUSED');
    expect(desk.paid).toEqual([]);
  });
});

describe('the first recorded answer stands', () => {
  test('the same one again succeeds, another one is ALREADY_ANSWERED with who, when and how (waiting 10)', async () => {
    const slow = gate();
    const hold = toolOf('hold', 'read', () => slow.pass());
    const calls = [
      { name: 'refund', input: { cents: 700 }, callId: 'c1' },
      { name: 'hold', input: {}, callId: 'c2' },
    ];
    const clock = testClock(1_000_000);
    const noted = notedStore(clock);
    const paid: unknown[] = [];
    const tools = [refundTool({ needsApproval: true, approval: { editable: true } }, paid), hold];
    const desk = deskOf({ clock, noted, tools, script: [callTools(calls), reply('done')] });
    const { control, wait } = await desk.begin();
    const { id } = wait();
    expect(await control.approve(id, { by: ada, input: { cents: 5 } })).toBe('recorded');
    await settle();
    const remote = deskOf({ clock, noted }).executor.control('r');
    for (const again of [control, remote]) {
      expect(await again.approve(id, { by: ada, input: { cents: 5 }, note: 'again' })).toBe('recorded');
      for (const other of [
        () => again.approve(id, { by: ada, input: { cents: 6 } }),
        () => again.approve(id, { by: ada }),
        () => again.approve(id, { by: bob }),
        () => again.deny(id, { by: ada }),
      ]) {
        const error = await other().catch((thrown: unknown) => thrown);
        expect(error).toMatchObject({ code: 'ALREADY_ANSWERED', answered: { by: ada, at: 1_000_000, how: 'approve' } });
      }
    }
    slow.open();
    await settle();
    expect(paid).toEqual([5]);
  });

  test('each voter of a quorum may repeat the own vote after the end (waiting 10)', async () => {
    const slow = gate();
    const hold = toolOf('hold', 'read', () => slow.pass());
    const script = [
      callTools([
        { name: 'refund', input: { cents: 700 } },
        { name: 'hold', input: {} },
      ]),
      reply('done'),
    ];
    const tools = [refundTool({ needsApproval: true, approval: { quorum: 2 } }), hold];
    const desk = await waiting({}, { tools, script });
    for (const by of [ada, bob, ada, bob]) expect(await desk.control.approve(desk.id, { by })).toBe('recorded');
    expect(await codeOf(desk.control.approve(desk.id, { by: { id: 'cy' } }))).toBe('ALREADY_ANSWERED');
    slow.open();
    expect((await desk.run.result).status).toBe('ok');
  });

  test('an unknown wait is WAIT_GONE, also with a hostile id, for another run, and after the end of the run (waiting 10)', async () => {
    const twice = [1, 2].map(() => callTool('refund', { cents: 700 }));
    const desk = await waiting({}, { script: [...twice, reply('done')] });
    await desk.start({ runId: 'r2' });
    await settle();
    const [theirs] = waitsOf(desk.executor, 'r2');
    const remote = office(desk).control('r');
    for (const control of [desk.control, remote]) {
      for (const id of ['gone', '__proto__', 'constructor', '\u0000', '\ud800', theirs?.id ?? ''])
        expect(await codeOf(control.approve(id, { by: ada })), id).toBe('WAIT_GONE');
      await expect(control.approve('', { by: ada })).rejects.toThrow(TypeError);
      await expect(control.approve(7 as never, { by: ada })).rejects.toThrow(TypeError);
    }
    await desk.control.approve(desk.id, { by: ada });
    await desk.run.result;
    for (const control of [desk.control, remote])
      expect(await codeOf(control.approve(desk.id, { by: ada }))).toBe('WAIT_GONE');
    expect(await codeOf(desk.executor.control('never').approve(desk.id, { by: ada }))).toBe('RUN_NOT_FOUND');
  });

  test('the record remembers the ends of the newest 8 waits (waiting 10)', async () => {
    const calls = Array.from({ length: 10 }, (_, n) => ({ name: 'refund', input: { cents: n }, callId: `c${n}` }));
    const desk = deskOf({ script: [callTools(calls), reply('done')] });
    const { control } = await desk.begin();
    const ids = waitsOf(desk.executor, 'r').map(({ id }) => id);
    for (const id of ids.slice(0, 9)) await control.deny(id, { by: ada });
    expect(await codeOf(control.deny(ids[0] as string, { by: ada }))).toBe('WAIT_GONE');
    expect(await codeOf(control.deny(ids[1] as string, { by: ada }))).toBe('recorded');
  });

  test('a command leaves the inbox after the save that has its effect, and not before (waiting 10)', async () => {
    const desk = await waiting();
    await office(desk).control('r').approve(desk.id, { by: ada });
    const door = gate();
    for (const method of ['save', 'append'] as const)
      desk.noted.rule(method, async (call) => {
        await door.pass();
        return call();
      });
    await desk.clock.advance(500);
    await settle();
    expect(desk.noted.of('commands.acknowledge')).toEqual([]);
    expect(await desk.noted.inner.commands.inbox({ runId: 'r' })).toHaveLength(1);
    door.open();
    await settle();
    expect(desk.noted.of('commands.acknowledge')).not.toEqual([]);
    expect(desk.paid).toEqual([700]);
  });

  test('the id of a command is made of wait, decision and person: the same answer is one command (waiting 10)', async () => {
    // A tool that may refuse an answer: the store must hold others behind it.
    const desk = await waiting({ editable: true, approvers: () => true });
    const remote = office(desk).control('r');
    await remote.approve(desk.id, { by: ada });
    await office(desk).control('r').approve(desk.id, { by: ada, note: 'again' });
    await remote.approve(desk.id, { by: bob });
    await remote.approve(desk.id, { by: ada, input: { cents: 5 } });
    await remote.deny(desk.id, { by: ada });
    expect(await desk.noted.inner.commands.inbox({ runId: 'r' })).toHaveLength(4);
  });

  describe('while no process has taken up the run', () => {
    /** A desk whose run rests, and a process that only controls it. */
    async function resting(approval: Approval = {}, options: DeskOptions = {}) {
      const desk = await waiting(approval, options);
      await desk.linger();
      await desk.executor.shutdown();
      const remote = office(desk);
      const inbox = async () => (await desk.noted.inner.commands.inbox({ runId: 'r' })).map(({ command }) => command);
      return { ...desk, remote, control: remote.control('r'), inbox };
    }

    test.for([
      ['approve', 'deny'],
      ['deny', 'approve'],
    ] as const)(
      '%s is stored, so %s is ALREADY_ANSWERED at once, and is not stored (waiting 10)',
      async ([first, second]) => {
        const desk = await resting();
        expect(await desk.control[first](desk.id, { by: ada })).toBe('sent');
        await expect(desk.control[second](desk.id, { by: bob })).rejects.toMatchObject({
          code: 'ALREADY_ANSWERED',
          message: expect.stringContaining(
            `is answered: ${first} by ada; that answer is stored, and this one changes nothing`,
          ),
          answered: { how: first, by: ada, at: desk.clock.now() },
        });
        expect(await desk.inbox()).toHaveLength(1);
        // The same decision again is no second one.
        expect(await desk.control[first](desk.id, { by: ada })).toBe('sent');
        const next = others(desk, { rules: { needsApproval: true } });
        await next.executor.recover();
        await settle();
        expect(next.paid).toEqual(first === 'approve' ? [700] : []);
      },
    );

    test('votes of a quorum are stored up to its number, and a further one is ALREADY_ANSWERED (waiting 7, 10)', async () => {
      const desk = await resting({ quorum: 2 });
      const by = (id: string) => ({ by: { id } });
      expect(await desk.control.approve(desk.id, by('ada'))).toBe('sent');
      expect(await desk.control.approve(desk.id, by('bob'))).toBe('sent');
      expect(await codeOf(desk.control.approve(desk.id, by('cy')))).toBe('ALREADY_ANSWERED');
      expect(await codeOf(desk.control.deny(desk.id, by('dan')))).toBe('ALREADY_ANSWERED');
      expect(await desk.inbox()).toHaveLength(2);
    });

    test.for([
      ['the tool asks who may decide', { approvers: ({ by }: { by: Person }) => by.id === 'bob' }, {}],
      ['the input was changed', { editable: true }, { input: { cents: 'many' } }],
    ] as const)(
      'an answer that may be refused, because %s, keeps no other answer out (waiting 6, 7, 10)',
      async ([, approval, edit]) => {
        const desk = await resting(approval as Approval);
        expect(await desk.control.approve(desk.id, { by: ada, ...edit })).toBe('pending');
        expect(await desk.control.approve(desk.id, { by: bob })).toBe('approvers' in approval ? 'pending' : 'sent');
        expect(await desk.inbox()).toHaveLength(2);
        const next = others(desk, { rules: { needsApproval: true, approval: approval as Approval } });
        await next.executor.recover();
        await settle();
        expect(next.paid).toEqual([700]);
      },
    );

    test('a person whom the tool refuses cannot fill the inbox: 8 unread answers of one person to a wait, and others still get in (waiting 7)', async () => {
      const desk = await resting({
        editable: true,
        approvers: ({ by }) => by.id === 'bob' || { refused: 'bob decides' },
      });
      for (let cents = 1; cents <= 8; cents++)
        expect(await desk.control.approve(desk.id, { by: ada, input: { cents } })).toBe('pending');
      expect(await codeOf(desk.control.approve(desk.id, { by: ada, input: { cents: 9 } }))).toBe('UNDELIVERED');
      expect(await desk.control.approve(desk.id, { by: ada, input: { cents: 8 } })).toBe('pending');
      expect(await desk.control.approve(desk.id, { by: bob })).toBe('pending');
      expect(await desk.inbox()).toHaveLength(9);
    });

    test('an answer of a kind that the wait does not take is refused where it is sent (waiting 10)', async () => {
      const desk = await resting();
      expect(await codeOf(desk.control.wake(desk.id))).toBe('ANSWER_REFUSED');
      expect(await codeOf(desk.control.answer(desk.id, 'yes'))).toBe('ANSWER_REFUSED');
      expect(await desk.inbox()).toEqual([]);
    });

    test('a stored answer that came after the end of the wait keeps no other answer out (waiting 11)', async () => {
      const desk = await resting({ expiresInMs: 10_000, onExpiry: 'park' });
      await desk.clock.advance(20_000);
      expect(await desk.control.approve(desk.id, { by: ada })).toBe('sent');
      expect(await desk.control.deny(desk.id, { by: bob })).toBe('sent');
    });

    test('a changed input of a tool that takes none is refused where it is sent, and nothing is stored (waiting 6)', async () => {
      const desk = await resting();
      await expect(desk.control.approve(desk.id, { by: ada, input: { cents: 5 } })).rejects.toMatchObject({
        code: 'ANSWER_REFUSED',
        message: 'the input of refund may not be changed: its tool has no `approval: { editable: true }`',
      });
      expect(await desk.inbox()).toEqual([]);
    });

    test('a tool that asks who may decide says so in the wait: an answer without a person is a TypeError in any process (waiting 7)', async () => {
      const desk = await resting({ approvers: () => true });
      expect(await desk.remote.waiting()).toMatchObject([{ kind: 'approval', approvers: true }]);
      expect(await codeOf(desk.control.deny(desk.id))).toBe('TypeError');
    });

    test('the list has the stored answers with their input, if it is asked for them (waiting 10)', async () => {
      const desk = await resting({ editable: true });
      expect(await desk.remote.waiting({ answers: true })).not.toMatchObject([{ answers: expect.anything() }]);
      await desk.control.approve(desk.id, { by: ada, input: { cents: 5 }, note: 'too much' });
      const answer = { how: 'approve', by: ada, input: { cents: 5 }, note: 'too much', at: desk.clock.now() };
      expect(await desk.remote.waiting({ answers: true })).toMatchObject([{ id: desk.id, answers: [answer] }]);
      const [wait] = await desk.remote.waiting();
      expect(wait).not.toHaveProperty('answers');
      desk.noted.rule('commands.inbox', () => Promise.reject(new Error('away')));
      expect(await desk.remote.waiting({ answers: true })).toMatchObject([{ id: desk.id }]);
    });
  });

  test.for([
    ['a note', { note: 'n'.repeat(4_097) }],
    ['a reason', { reason: 'n'.repeat(4_097) }],
  ] as const)('%s of more than 4,096 characters is refused where it is sent', async ([, said]) => {
    const desk = await waiting();
    const sent = 'note' in said ? desk.control.approve(desk.id, said) : desk.control.deny(desk.id, said);
    expect(await codeOf(sent)).toBe('UNDELIVERED');
  });
});

describe('an answer and the expiry', () => {
  const short = { expiresInMs: 10_000 };

  test('an answer that was sent up to dueAt beats the expiry, although it is read later (waiting 11)', async () => {
    const desk = await waiting(short, { defaults: { controlMs: 600_000, waitLingerMs: 600_000, leaseMs: 600_000 } });
    await desk.clock.advance(10_000 - 1);
    expect(await office(desk).control('r').approve(desk.id, { by: ada })).toBe('sent');
    await desk.clock.advance(10_000);
    await settle();
    expect(desk.paid).toEqual([700]);
  });

  test('an answer that was sent after dueAt comes too late, although no process has recorded the expiry (waiting 11)', async () => {
    const desk = await waiting(short);
    await desk.linger();
    expect(waitsIn(await desk.run.result)).toHaveLength(1);
    await desk.executor.shutdown();
    await desk.clock.advance(20_000);
    const next = others(desk);
    expect(await next.executor.control('r').approve(desk.id, { by: ada })).toBe('sent');
    const { run, seen } = await next.begin();
    expect((await run.result).status).toBe('ok');
    expect([...desk.paid, ...next.paid]).toEqual([]);
    expect(seen.map(({ type }) => type)).toContain('wait.expired');
  });

  test('of a run that rested, an answer in time beats the expiry, and a late one beside it does not (waiting 11)', async () => {
    const desk = await waiting({ ...short, approvers: async () => true as const });
    await desk.linger();
    await desk.executor.shutdown();
    const rules = {
      needsApproval: true,
      approval: { ...short, approvers: () => new Promise<true>((resolve) => setImmediate(() => resolve(true))) },
    };
    const next = others(desk, { rules });
    await next.executor.control('r').approve(desk.id, { by: ada });
    await desk.clock.advance(20_000);
    await next.executor.control('r').deny(desk.id, { by: bob });
    const { run } = await next.begin();
    expect((await run.result).status).toBe('ok');
    expect(next.paid).toEqual([700]);
  });

  test('an answer that is being checked when the time ends is no late one (waiting 11)', async () => {
    const door = gate<true>();
    const desk = await waiting(
      { ...short, approvers: () => door.pass() },
      { defaults: { waitLingerMs: 600_000, portMs: 60_000 } },
    );
    const answer = desk.control.approve(desk.id, { by: ada });
    await desk.clock.advance(15_000);
    expect(desk.wait().id).toBe(desk.id);
    door.open(true);
    expect(await answer).toBe('recorded');
    await settle();
    expect(desk.paid).toEqual([700]);
  });

  test('no expiry is recorded while the inbox cannot be read (waiting 11)', async () => {
    const desk = await waiting(short, { defaults: { waitLingerMs: 600_000 } });
    desk.noted.rule('commands.inbox', () => Promise.reject(new Error('away')));
    await desk.clock.advance(12_000);
    expect(desk.wait().id).toBe(desk.id);
    expect(await codeOf(desk.control.approve(desk.id, { by: ada }))).toBe('STORE_UNAVAILABLE');
    expect(desk.paid).toEqual([]);
    desk.noted.clear('commands.inbox');
    await desk.clock.advance(2_000);
    await settle();
    expect((await desk.run.result).status).toBe('ok');
    expect(desk.paid).toEqual([]);
    expect(desk.noted.of('commands.inbox').length).toBeLessThan(40);
  });

  test.for([
    ['fail', 'error', 'WAIT_EXPIRED'],
    ['park', 'interrupted', 'RUN_PARKED'],
  ] as const)('onExpiry %s ends the run: %s', async ([onExpiry, status, code]) => {
    const desk = await waiting({ ...short, onExpiry }, { defaults: { waitLingerMs: 600_000 } });
    await desk.clock.advance(10_001);
    expect(await desk.run.result).toMatchObject({ status, error: { code } });
    expect(desk.paid).toEqual([]);
    expect((await desk.noted.inner.load('r')) === null).toBe(onExpiry === 'fail');
  });
});

test('without a store a run takes its answers where it is (waiting 4, 10)', async () => {
  const desk = deskOf({ store: undefined as never });
  const { run, control, wait } = await desk.begin();
  const { id } = wait();
  expect(await control.approve(id, { by: ada })).toBe('recorded');
  expect((await run.result).status).toBe('ok');
  expect(desk.paid).toEqual([700]);
});
