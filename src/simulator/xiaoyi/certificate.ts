/**
 * A self-signed certificate for `localhost` and `127.0.0.1`, and its key. Not a secret: it is published with the package
 * and protects nothing. It exists so that pinning can be tried without any tool to make certificates.
 */
export const SELF_SIGNED = {
  key: `-----BEGIN PRIVATE KEY-----
MIGHAgEAMBMGByqGSM49AgEGCCqGSM49AwEHBG0wawIBAQQgMiH/LidFXu5Bywvi
6gap2ztR9EAX9iQ20tl92IzLJHyhRANCAATUzaRRvHwXf4+ICzZKrG/bvNqXTezm
3rRtLXRmoY1q1ucyse5qXjsOPvydanST+ZONxGAsZRTM5C8iTNr82CSr
-----END PRIVATE KEY-----
`,
  cert: `-----BEGIN CERTIFICATE-----
MIIBpTCCAUugAwIBAgIURWcYEJDz/4SNE/ospk4QAndalcswCgYIKoZIzj0EAwIw
GTEXMBUGA1UEAwwOY2xldy1zaW11bGF0b3IwIBcNMjYxMTE1MTkyOTI3WhgPMjEy
NjEwMjIxOTI5MjdaMBkxFzAVBgNVBAMMDmNsZXctc2ltdWxhdG9yMFkwEwYHKoZI
zj0CAQYIKoZIzj0DAQcDQgAE1M2kUbx8F3+PiAs2Sqxv27zal03s5t60bS10ZqGN
atbnMrHual47Dj78nWp0k/mTjcRgLGUUzOQvIkza/Ngkq6NvMG0wHQYDVR0OBBYE
FF1nHySNz7NfGeJv51h4ZQDKOjHkMB8GA1UdIwQYMBaAFF1nHySNz7NfGeJv51h4
ZQDKOjHkMA8GA1UdEwEB/wQFMAMBAf8wGgYDVR0RBBMwEYIJbG9jYWxob3N0hwR/
AAABMAoGCCqGSM49BAMCA0gAMEUCIQCMyrXHd14FORxLExM791wKWwWIdcqghUEf
IYe7ETLQxQIgQhY+chSsLtvwx8LJ1zdlklNWqVdnJuCmVah2fEqxl+8=
-----END CERTIFICATE-----
`,
} as const
