import { nodeCrypto } from '../values/digest.ts';

/*
 * Who serves a model, and what it takes. Reasoning, signatures and ids of items are valid for the vendor that made them; a
 * host that serves models of several makers (Vertex, Bedrock, a gateway) is one vendor for each of them.
 */

/** The vendor of a model. */
export interface Vendor {
  /** Equal for two models that may read each other's reasoning and provider options. */
  readonly name: string;
  /** The account, where a list of models names one: another account reads neither. */
  readonly key?: string;
  /** The keys of its provider options. */
  readonly namespaces: ReadonlySet<string>;
  /** The key of provider options under which `strictJsonSchema` is set; absent = the vendor has no such mode. */
  readonly strictIn?: string;
  /** Returns the id of a tool call as this vendor takes it: the id itself, or a hash of it. */
  callId(id: string): string;
}

/** The beginnings of `provider`, longest first, and the keys of provider options that the packages of these vendors read. */
const known: readonly (readonly [provider: string, ...namespaces: string[]])[] = [
  ['googleVertex.anthropic', 'anthropic', 'googleVertex', 'vertex'],
  ['vertex.anthropic', 'anthropic', 'googleVertex', 'vertex'],
  ['amazonBedrock.anthropic', 'anthropic', 'amazonBedrock', 'bedrock'],
  ['bedrock.anthropic', 'anthropic', 'amazonBedrock', 'bedrock'],
  ['google.vertex', 'googleVertex', 'vertex', 'google'],
  ['amazonBedrock', 'amazonBedrock', 'bedrock'],
  ['amazon-bedrock', 'amazonBedrock', 'bedrock'],
  ['bedrock', 'amazonBedrock', 'bedrock'],
  ['azure', 'azure', 'openai'],
  ['anthropic', 'anthropic'],
  ['openai', 'openai'],
  ['google', 'google'],
  ['mistral', 'mistral'],
  ['xai', 'xai'],
  ['groq', 'groq'],
  ['deepseek', 'deepseek'],
  ['cohere', 'cohere'],
  ['openrouter', 'openrouter'],
  ['gateway', 'gateway'],
];

const knownNamespaces: ReadonlySet<string> = new Set(known.flatMap(([, ...namespaces]) => namespaces));

/** The namespaces of packages that ask for strict answers unless an option says no. */
const STRICT = ['azure', 'groq', 'openai', 'openaiCompatible'];

/** Packages for compatible servers read these, beside the name of the server. */
const COMPATIBLE = ['openaiCompatible', 'openai-compatible'];

/** Ids that a vendor takes, and how long a hash in their place is. */
interface IdRule {
  readonly of: RegExp;
  readonly fits: (id: string) => boolean;
  readonly length: number;
}

const idRules: readonly IdRule[] = [
  { of: /mistral/i, fits: (id) => /^[A-Za-z0-9]{9}$/.test(id), length: 9 },
  { of: /anthropic|bedrock/i, fits: (id) => /^[A-Za-z0-9_-]{1,64}$/.test(id), length: 24 },
];
/** Of other vendors some read their own ids, such as `functions.look:0`. */
const otherIds: IdRule = { of: /^/, fits: ({ length }) => length > 0 && length <= 64, length: 24 };

/** Each answer in a transcript names its model, most of them the same. */
const vendors = new Map<string, Vendor>();
const MAX_VENDORS = 100;

/** Returns the vendor of a model. @param modelName `provider/modelId`, as records name it */
export function vendorOf(modelName: string): Vendor {
  const found = vendors.get(modelName);
  if (found) return found;
  const vendor = readVendor(modelName);
  if (vendors.size >= MAX_VENDORS) vendors.clear();
  vendors.set(modelName, vendor);
  return vendor;
}

function readVendor(modelName: string): Vendor {
  const slash = modelName.indexOf('/');
  const provider = slash < 0 ? modelName : modelName.slice(0, slash);
  const row = known.find(([prefix]) => provider === prefix || provider.startsWith(`${prefix}.`));
  const first = provider.split('.', 1)[0] ?? '';
  const [name, ...namespaces] = row ?? [first, first, camelCase(first), ...COMPATIBLE];
  const maker = makerIn(modelName.slice(slash + 1));
  const ofMaker = known.find(([prefix]) => prefix === maker)?.slice(1) ?? [];
  const whole = maker === '' ? name : `${name}/${maker}`;
  const rule = idRules.find(({ of }) => of.test(whole)) ?? otherIds;
  const all = [...namespaces, ...ofMaker];
  const strictIn = STRICT.find((namespace) => all.includes(namespace));
  return {
    name: whole,
    namespaces: new Set(all),
    ...(strictIn ? { strictIn } : {}),
    callId: (id) => (rule.fits(id) ? id : hashOf(id, rule.length)),
  };
}

/** The maker that a model id begins with: `anthropic/claude-opus`, and on Bedrock `us.anthropic.claude-opus`. */
function makerIn(modelId: string): string {
  const slash = modelId.indexOf('/');
  if (slash > 0) return modelId.slice(0, slash);
  return /^(?:[a-z]{2,6}\.)?(anthropic|amazon|meta|mistral|cohere|deepseek|openai)\./.exec(modelId)?.[1] ?? '';
}

/** Returns whether a key of provider options belongs to another vendor. Keys that no vendor has are the host's. */
export function isForeign(namespace: string, vendor: Vendor): boolean {
  return namespace === 'pawl' || (knownNamespaces.has(namespace) && !vendor.namespaces.has(namespace));
}

function camelCase(name: string): string {
  return name.replace(/[-_]([a-z])/g, (_, letter: string) => letter.toUpperCase());
}

/** The first characters of a hash, of letters and digits alone: every vendor takes them. */
function hashOf(id: string, length: number): string {
  return BigInt(`0x${nodeCrypto().hash('sha256', id)}`)
    .toString(36)
    .padStart(length, '0')
    .slice(0, length);
}
