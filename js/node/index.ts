/** The package in Node: the same functions, with worker threads in the place of workers, and files by path. */

import { runIn } from '../launch.js';
import { node } from './surroundings.js';

runIn(node);

export * from '../index.js';
