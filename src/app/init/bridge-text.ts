/** The answers and flags of `clew init`; texts of the form `$NAME` stay references to the environment. */
export interface InitChoices {
  /** `demo` or `<provider>/<model id>`. */
  readonly model: string
  readonly provider?: {
    readonly name: string
    readonly apiKey?: string
    readonly baseUrl?: string
    /** For a name that means nothing by itself. */
    readonly isCompatible?: boolean
  }
  readonly token?: string
  readonly xiaoyi?: { readonly ak: string; readonly sk: string; readonly agentId: string }
}

/** A `bridge.json` with a comment for everything in it, and for what people look for next. */
export function bridgeText({ model, provider, token, xiaoyi }: InitChoices): string {
  return [
    '// Clew configuration. Comments and trailing commas are allowed; "$NAME" is read from the environment.',
    '// `clew config check` reads this file, `clew config schema` describes every key.',
    '{',
    '  // "demo" or "<provider>/<model id>"; a list names fallbacks.',
    `  "model": ${json(model)},`,
    ...(provider === undefined ? [] : providerLines(provider)),
    '',
    '  // What the model may use: time, calculator, files (in <home>/workspace), fetch.',
    '  "agent": { "tools": ["time", "calculator", "files", "fetch"] },',
    ...(token === undefined
      ? [
          '',
          '  // Needed before listening beyond this machine:',
          '  // "listen": { "host": "0.0.0.0", "token": "$CLEW_TOKEN" },',
        ]
      : ['', '  // Clients have to send this token.', `  "listen": { "token": ${json(token)} },`]),
    ...(xiaoyi === undefined ? [] : xiaoyiLines(xiaoyi)),
    '}',
    '',
  ].join('\n')
}

function providerLines({ name, apiKey, baseUrl, isCompatible }: NonNullable<InitChoices['provider']>): string[] {
  const fields = [
    ...(isCompatible === true ? ['"type": "openai-compatible"'] : []),
    ...(apiKey === undefined ? [] : [`"apiKey": ${json(apiKey)}`]),
    ...(baseUrl === undefined ? [] : [`"baseUrl": ${json(baseUrl)}`]),
  ]
  const entry = fields.length === 0 ? '{}' : `{ ${fields.join(', ')} }`
  return ['  "providers": {', `    ${json(name)}: ${entry},`, '  },']
}

function xiaoyiLines({ ak, sk, agentId }: NonNullable<InitChoices['xiaoyi']>): string[] {
  return [
    '',
    '  "channels": {',
    '    // From the XiaoYi console.',
    `    "xiaoyi": { "enabled": true, "ak": ${json(ak)}, "sk": ${json(sk)}, "agentId": ${json(agentId)} },`,
    '  },',
  ]
}

/** True when a key, token or secret stands in the text itself instead of a reference. */
export function holdsLiteralSecret({ provider, token, xiaoyi }: InitChoices): boolean {
  return [provider?.apiKey, token, xiaoyi?.ak, xiaoyi?.sk].some((text) => text !== undefined && !isReference(text))
}

function isReference(text: string): boolean {
  return /^\$[A-Za-z_][A-Za-z0-9_]*$/u.test(text)
}

function json(text: string): string {
  return JSON.stringify(text)
}
