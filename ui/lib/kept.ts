/** What the browser keeps for this page: drafts, theme, language, the client's id. Storage may be switched off. */
export function kept(name: string): string | undefined {
  try {
    return localStorage.getItem(`clew.${name}`) ?? undefined
  } catch {
    return undefined
  }
}

/** What was written here is of the person who signs out; how the page looks is of the machine. */
export function forgetWritten(): void {
  try {
    for (const name of Object.keys(localStorage))
      if (name.startsWith('clew.') && name !== 'clew.theme' && name !== 'clew.language') localStorage.removeItem(name)
  } catch {
    // Without storage nothing was kept.
  }
}

export function keep(name: string, value: string | undefined): void {
  try {
    if (value === undefined || value === '') localStorage.removeItem(`clew.${name}`)
    else localStorage.setItem(`clew.${name}`, value)
  } catch {
    // Without storage the value lives as long as the page.
  }
}
