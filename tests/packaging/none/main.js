// The page without a bundler: the package as a server serves it.
import { open } from './node_modules/sluice-llm/pkg/index.js';
import { stream } from './stream.js';

stream(open);
