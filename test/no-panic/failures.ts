/** The ways in which a thing that a host hands over can misbehave when it is called, or when what it gave is looked at. */
export const failures = [
  'throws an Error',
  'throws null',
  'throws what cannot be read',
  'throws what has a throwing toJSON',
  'rejects',
  'rejects with what cannot be read',
  'gives what cannot be read',
  'gives what has a throwing toJSON',
  'hangs',
] as const;

export type Failure = (typeof failures)[number];

/** Whatever is asked of it, it throws: its properties, its keys, what it is an instance of. */
export function unreadable(): object {
  const refuse = (): never => {
    throw new Error('this cannot be read');
  };
  return new Proxy(() => {}, {
    get: refuse,
    has: refuse,
    ownKeys: refuse,
    getPrototypeOf: refuse,
    getOwnPropertyDescriptor: refuse,
    apply: refuse,
  });
}

export function withoutJson(): object {
  return {
    toJSON: () => {
      throw new Error('this has no JSON');
    },
  };
}

/** Does it. What takes a function can be given `() => fail(failure)`. */
export function fail(failure: Failure): never {
  return misbehave(failure) as never;
}

function misbehave(failure: Failure): unknown {
  switch (failure) {
    case 'throws an Error':
      throw new Error('boom');
    case 'throws null':
      throw null;
    case 'throws what cannot be read':
      throw unreadable();
    case 'throws what has a throwing toJSON':
      throw withoutJson();
    case 'rejects':
      return Promise.reject(new Error('boom'));
    case 'rejects with what cannot be read':
      return Promise.reject(unreadable());
    case 'gives what cannot be read':
      return unreadable();
    case 'gives what has a throwing toJSON':
      return withoutJson();
    case 'hangs':
      return new Promise(() => {});
  }
}
