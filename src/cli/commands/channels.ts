import { apiOf, requireContact, type CommonOptions } from '../connect.ts'
import { printJson, printLines } from '../output.ts'

/** Accepts the certificate a channel refused because it had changed. */
export async function trustChannel(name: string, options: CommonOptions): Promise<void> {
  const result = await apiOf(await requireContact(options)).post(`/api/channels/${encodeURIComponent(name)}/trust`)
  if (options.json === true) return printJson(result)
  const accepted = Number(result['accepted'] ?? 0)
  printLines([
    accepted === 0
      ? 'no certificate was waiting to be accepted'
      : `${accepted} ${accepted === 1 ? 'certificate is' : 'certificates are'} trusted now`,
  ])
}
