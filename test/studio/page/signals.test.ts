import { describe, expect, it } from 'vitest';
import { batch, computed, effect, signal } from '../../../src/studio/page/frame/signals.ts';

describe('a signal of the page', () => {
  it('runs each effect that read it, once a change, and not for the same value', () => {
    const count = signal(1);
    const seen: number[] = [];
    const end = effect(() => {
      seen.push(count.value);
    });
    count.value = 1;
    count.value = 2;
    end();
    count.value = 3;
    expect(seen).toEqual([1, 2]);
  });

  it('is followed only by what read it the last time', () => {
    const isLong = signal(false);
    const text = signal('a');
    let runs = 0;
    effect(() => {
      runs += 1;
      if (isLong.value) void text.value;
    });
    text.value = 'b';
    expect(runs).toBe(1);
    isLong.value = true;
    text.value = 'c';
    expect(runs).toBe(3);
    isLong.value = false;
    text.value = 'd';
    expect(runs).toBe(4);
  });

  it('is read without being followed by peek', () => {
    const count = signal(1);
    let runs = 0;
    effect(() => {
      runs += count.peek();
    });
    count.value = 5;
    expect(runs).toBe(1);
  });
});

describe('a computed value of the page', () => {
  it('is computed when it is read, once for each change of what it is made of', () => {
    const [a, b] = [signal(1), signal(2)];
    let runs = 0;
    const sum = computed(() => {
      runs += 1;
      return a.value + b.value;
    });
    expect(runs).toBe(0);
    expect([sum.value, sum.value]).toEqual([3, 3]);
    batch(() => {
      a.value = 10;
      b.value = 20;
    });
    expect([sum.value, sum.peek(), runs]).toEqual([30, 30, 2]);
  });

  it('wakes nothing while it stays the same, and shows no reader a half of a change', () => {
    const count = signal(1);
    const isOdd = computed(() => count.value % 2 === 1);
    const both = computed(() => `${count.value} ${isOdd.value}`);
    const [odd, all]: [boolean[], string[]] = [[], []];
    effect(() => {
      odd.push(isOdd.value);
    });
    effect(() => {
      all.push(both.value);
    });
    for (const next of [3, 5, 6]) count.value = next;
    expect(odd).toEqual([true, false]);
    expect(all).toEqual(['1 true', '3 true', '5 true', '6 false']);
  });

  it('is computed again for its next reader after it has thrown', () => {
    const isBroken = signal(false);
    const value = computed(() => {
      if (isBroken.value) throw new Error('broken');
      return 7;
    });
    expect(value.value).toBe(7);
    isBroken.value = true;
    expect(() => value.value).toThrow('broken');
    expect(() => value.value).toThrow('broken');
    isBroken.value = false;
    expect(value.value).toBe(7);
  });
});

describe('an effect of the page', () => {
  it('runs once after a batch, and cleans up before it runs again and at its end', () => {
    const count = signal(0);
    const seen: string[] = [];
    const end = effect(() => {
      const own = count.value;
      seen.push(`run ${own}`);
      return () => seen.push(`clean ${own}`);
    });
    batch(() => {
      count.value = 1;
      batch(() => {
        count.value = 2;
      });
      expect(seen).toEqual(['run 0']);
    });
    end();
    expect(seen).toEqual(['run 0', 'clean 0', 'run 2', 'clean 2']);
  });

  it('may set what others read, and what it read itself', () => {
    const [wish, answer] = [signal(0), signal(0)];
    const seen: number[] = [];
    effect(() => {
      answer.value = wish.value * 2;
      if (wish.value === 2) wish.value = 3;
    });
    effect(() => {
      seen.push(answer.value);
    });
    wish.value = 2;
    expect([wish.value, answer.value]).toEqual([3, 6]);
    expect(seen.at(-1)).toBe(6);
  });

  it('that throws holds up no later change', () => {
    const count = signal(0);
    const seen: number[] = [];
    effect(() => {
      if (count.value === 1) throw new Error('broken');
    });
    effect(() => {
      seen.push(count.value);
    });
    expect(() => {
      count.value = 1;
    }).toThrow('broken');
    count.value = 2;
    expect(seen.at(-1)).toBe(2);
  });

  it('that wakes itself without an end throws, and freezes nothing', () => {
    const count = signal(0);
    const rise = () => {
      if (count.value > 0) count.value += 1;
    };
    const end = effect(rise);
    expect(() => {
      count.value = 1;
    }).toThrow('change each other without an end');
    end();
    expect(count.peek()).toBeGreaterThan(1_000);
  });
});
