/** One line of `clew doctor`. */
export interface DoctorCheck {
  readonly name: string
  readonly status: 'ok' | 'warning' | 'problem'
  readonly message: string
  /** What to do. */
  readonly fix?: string
}

export function ok(name: string, message: string): DoctorCheck {
  return { name, status: 'ok', message }
}

export function warning(name: string, message: string, fix?: string): DoctorCheck {
  return { name, status: 'warning', message, ...(fix === undefined ? {} : { fix }) }
}

export function problem(name: string, message: string, fix?: string): DoctorCheck {
  return { name, status: 'problem', message, ...(fix === undefined ? {} : { fix }) }
}
