// Imported before anything else, and written so that old versions of Node can still read it.
const wanted = [20, 19]
const [major, minor] = process.versions.node.split('.').map(Number)

if (major < wanted[0] || (major === wanted[0] && minor < wanted[1])) {
  process.stderr.write(
    `clew needs Node ${wanted.join('.')} or newer, this is ${process.versions.node}: see https://nodejs.org\n`,
  )
  process.exit(1)
}
