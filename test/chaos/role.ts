/** One process of the product, `api` or `worker`, that dies at the points the folder `CHAOS_DIR` arms: `node role.ts worker`. */
import { join } from 'node:path';
import { apiCommand, workerCommand } from '@treadle/cli';
import { crashingDirectory, crashingPorts, openArmed } from '@treadle/testkit';

const dir = process.env.CHAOS_DIR;
if (dir === undefined) throw new Error('CHAOS_DIR names no folder');
const armed = openArmed(dir);
process.exitCode = process.argv[2] === 'api'
  ? await apiCommand([], (store) => crashingDirectory(store, armed))
  : await workerCommand([], (ports) => crashingPorts(ports, armed, join(dir, 'ledger.jsonl')));
process.exit();
