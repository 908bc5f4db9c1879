// The runner's post step. It runs the same bundle as main; that this file is the entry tells the bundle which of the two it is, even
// when main was stopped before it could leave any state.
await import('../../dist/index.js')
