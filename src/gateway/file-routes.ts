import type { FileLinks } from '../channel/files/file-links.ts'
import type { FileStore, StoredFile } from '../channel/files/file-store.ts'
import { boundaryOf, firstFileOf } from '../channel/files/multipart.ts'
import { GatewayError } from '../core/errors.ts'
import { UNKNOWN_OWNER } from '../core/inbound.ts'
import type { Access } from './access.ts'
import { json, type Call, type Route } from './http-routes.ts'
import { identityOf } from './sender-identity.ts'

/** Files that clients send, and get back. */
export function createFileRoutes(store: FileStore, access: Access): readonly Route[] {
  const ownerOf = ({ url, principal }: Call): string => {
    const { account, caller } = identityOf(access, principal, url)
    return caller?.owner ?? account ?? UNKNOWN_OWNER
  }
  return [
    {
      method: 'POST',
      path: /^\/api\/files$/u,
      answer: async (call) => json({ ...(await take(call.request, store, ownerOf(call))) }, 201),
    },
    {
      method: 'GET',
      path: /^\/api\/files\/([^/]+)$/u,
      answer: async (call) => give(await store.find(call.name, ownerOf(call)), store),
    },
  ]
}

/** `GET` of a signed address, which needs no token. Undefined for every other request. */
export async function answerSignedFile(
  { method }: Request,
  url: URL,
  { store, links }: { readonly store: FileStore; readonly links: FileLinks },
): Promise<Response | undefined> {
  const id = method === 'GET' ? links.fileOf(url) : undefined
  return id === undefined ? undefined : give(await store.findLinked(id), store)
}

async function take(request: Request, store: FileStore, owner: string): Promise<StoredFile> {
  const { headers } = request
  const type = headers.get('content-type') ?? ''
  const body = piecesOf(request)
  const boundary = boundaryOf(type)
  if (boundary !== undefined) {
    const { name, mimeType, content } = await firstFileOf(body, boundary)
    return store.put(content, { name, mimeType }, owner)
  }
  // `curl --data-binary` calls every body a form: that says nothing about the file.
  const mimeType = type.toLowerCase().startsWith('application/x-www-form-urlencoded') ? '' : type
  return store.put(body, { name: fileNameOf(headers), mimeType }, owner)
}

/** A header holds plain letters only: other names come percent-encoded. */
function fileNameOf(headers: Headers): string {
  const name = headers.get('x-filename') ?? ''
  try {
    return decodeURIComponent(name)
  } catch {
    return name
  }
}

async function* piecesOf({ body }: Request): AsyncGenerator<Uint8Array> {
  const reader = body?.getReader()
  const first = await reader?.read()
  if (reader === undefined || first === undefined || first.done)
    throw new GatewayError('FRAME_MALFORMED', 'the body is empty')
  yield first.value
  for (;;) {
    const { done, value } = await reader.read()
    if (done) return
    yield value
  }
}

/** As an attachment and of the type that its content shows: a page that a user sent must not run as one of ours. */
function give(file: StoredFile, store: FileStore): Response {
  const pieces = store.read(file)
  const body = new ReadableStream<Uint8Array>({
    async pull(controller) {
      const { done, value } = await pieces.next()
      if (done === true) controller.close()
      else controller.enqueue(value)
    },
    async cancel() {
      await pieces.return(undefined)
    },
  })
  return new Response(body, {
    headers: {
      'content-type': file.mimeType,
      'content-length': String(file.bytes),
      'content-disposition': `attachment; filename*=UTF-8''${encodeURIComponent(file.name).replaceAll("'", '%27')}`,
      'cache-control': 'private, no-store',
      'x-content-type-options': 'nosniff',
      'content-security-policy': "default-src 'none'; sandbox",
    },
  })
}
