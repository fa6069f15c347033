/** A scene of an alert: series with their values each minute, as `promtool test rules` writes them, in names of the table. */
interface Scene {
  /** When the rules are asked. */
  readonly at: string;
  readonly series: Readonly<Record<string, string>>;
  /** The labels of the alert besides its urgency. */
  readonly labels?: Readonly<Record<string, string>>;
}

const calls = (errors: string, all: string) => ({
  'gen_ai.client.inference.duration_count{gen_ai.request.model="m", error.type="MODEL"}': errors,
  'gen_ai.client.inference.duration_count{gen_ai.request.model="m"}': all,
});

/** For each alert a scene in which it fires, and a neighbour in which it does not. */
export const scenes: Readonly<Record<string, { readonly fires: Scene; readonly calm: Scene }>> = {
  PawlModelErrors: {
    fires: { at: '40m', series: calls('0+3x40', '0+10x40'), labels: { gen_ai_request_model: 'm' } },
    calm: { at: '40m', series: calls('0+1x40', '0+10x40') },
  },
  PawlUnknownOutcome: {
    // It is born at 1, in a process that has just begun.
    fires: { at: '20m', series: { 'pawl.outcomes.unknown{pawl.agent.id="a"}': '_x17 1x5' } },
    calm: { at: '40m', series: { 'pawl.outcomes.unknown{pawl.agent.id="a"}': '1x40' } },
  },
  PawlLeasesLost: {
    fires: { at: '20m', series: { 'pawl.leases.lost{pawl.agent.id="a"}': '0x10 8x10' } },
    calm: { at: '20m', series: { 'pawl.leases.lost{pawl.agent.id="a"}': '0x10 2x10' } },
  },
  PawlSavesFail: {
    fires: { at: '20m', series: { 'pawl.checkpoints.failed{pawl.code="STORE_UNAVAILABLE"}': '0+1x20' } },
    // One failure, which a retry has mended.
    calm: { at: '20m', series: { 'pawl.checkpoints.failed{pawl.code="STORE_UNAVAILABLE"}': '0x15 1x5' } },
  },
  PawlSetup: {
    fires: { at: '20m', series: { 'pawl.setups.failed{pawl.code="SETUP"}': '_x17 1x5' } },
    calm: { at: '40m', series: { 'pawl.setups.failed{pawl.code="SETUP"}': '3x40' } },
  },
  PawlUndelivered: {
    fires: { at: '30m', series: { 'pawl.outcomes.undelivered': '0+1x30' } },
    calm: { at: '30m', series: { 'pawl.outcomes.undelivered': '0x10 1x20' } },
  },
  PawlScheduleMissed: {
    fires: { at: '20m', series: { 'pawl.schedules.missed': '0x15 3x5' } },
    calm: { at: '40m', series: { 'pawl.schedules.missed': '3x40' } },
  },
  PawlSpend: {
    fires: { at: '80m', series: { 'pawl.spend.usd{pawl.agent.id="a"}': '0+2x80' } },
    calm: { at: '80m', series: { 'pawl.spend.usd{pawl.agent.id="a"}': '0+1x80' } },
  },
  PawlNoWorker: {
    fires: { at: '10m', series: { 'pawl.due.age': '60+60x10', 'pawl.runs.live': '0x10' } },
    // A worker is slow: it works.
    calm: { at: '10m', series: { 'pawl.due.age': '60+60x10', 'pawl.runs.live': '4x10' } },
  },
  PawlDueRunsPileUp: {
    fires: { at: '20m', series: { 'pawl.due.age': '0+60x20' } },
    calm: { at: '20m', series: { 'pawl.due.age': '200x20' } },
  },
  PawlWaitsForPeople: {
    fires: {
      at: '70m',
      series: { 'pawl.runs.waiting{pawl.kind="approval"}': '101x70' },
      labels: { pawl_kind: 'approval' },
    },
    calm: { at: '70m', series: { 'pawl.runs.waiting{pawl.kind="timer"}': '101x70' } },
  },
  PawlParked: {
    fires: { at: '10m', series: { 'pawl.runs.parked': '0x5 1x5' } },
    calm: { at: '10m', series: { 'pawl.runs.parked': '1x5 0x5' } },
  },
  PawlNoProcess: {
    // The only process is killed: its last values are those of a store that answers and of runs that are due.
    fires: { at: '20m', series: { 'pawl.store.up{instance="a"}': '1x5 _x15', 'pawl.due.age': '0+60x5 _x15' } },
    // One of two is killed, and one does not reach its store: there is a process.
    calm: { at: '20m', series: { 'pawl.store.up{instance="a"}': '1x5 _x15', 'pawl.store.up{instance="b"}': '0x20' } },
  },
  PawlStoreAway: {
    fires: { at: '10m', series: { 'pawl.store.up{instance="a"}': '1x10', 'pawl.store.up{instance="b"}': '1x5 0x5' } },
    // For less than two minutes.
    calm: { at: '10m', series: { 'pawl.store.up{instance="a"}': '1x10', 'pawl.store.up{instance="b"}': '1x9 0x2' } },
  },
};
