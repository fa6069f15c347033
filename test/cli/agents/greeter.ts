// Has no models of its own.
import { defineAgent } from 'pawl';

export default defineAgent({ id: 'greeter', instructions: 'Greet.' });
