// For workerd without Node's modules: it loads the package, and says what is in it.
import * as pawl from 'pawl';

export default { fetch: async () => Response.json(Object.keys(pawl).sort()) };
