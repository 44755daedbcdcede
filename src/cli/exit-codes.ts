export const EXIT_FAILURE = 1
export const EXIT_USAGE = 2
