import { readFileSync } from 'node:fs'
import { join } from 'node:path'

const folder = join(import.meta.dirname, '..', 'fixtures', 'tls')

/** A self-signed certificate for `localhost`, made for these tests only. */
export const localhostTls = {
  key: readFileSync(join(folder, 'localhost-key.pem'), 'utf8'),
  cert: readFileSync(join(folder, 'localhost-cert.pem'), 'utf8'),
}
