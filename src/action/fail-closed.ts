// The first module of the bundle: until the very end says otherwise, the step has failed, whatever happens to the process.
process.exitCode = 1
