// Whoever can run it can read the sources.
export {};
