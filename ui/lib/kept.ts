/** What the browser keeps for this page: drafts, theme, language, the client's id. Storage may be switched off. */
export function kept(name: string): string | undefined {
  try {
    return localStorage.getItem(`clew.${name}`) ?? undefined
  } catch {
    return undefined
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
