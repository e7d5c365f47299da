// Uses the package from CommonJS.

const { locks, Lock, LockManager } = require('navlocks');

locks.request('a', (lock) => lock instanceof Lock && locks instanceof LockManager).then(console.log);
