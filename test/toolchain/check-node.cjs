// ES5 on purpose: an old Node has to get as far as printing the message.
var version = process.versions.node.split('.').map(Number);

if (version[0] < 22 || (version[0] === 22 && version[1] < 18)) {
  console.error(
    'pawl needs Node 22.18 or newer, this is ' +
      process.versions.node +
      '. Run `npm rebuild node --ignore-scripts=false` to get the Node of the lockfile.',
  );
  process.exit(1);
}
