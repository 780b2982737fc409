/** The worker thread's entry: what the worker's entry finds in a browser is made first. */

import './globals.js';
import '../worker/main.js';
