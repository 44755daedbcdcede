// Runs before the first paint, so that a chosen theme or language does not flash.
;(function () {
  var root = document.documentElement
  try {
    var theme = localStorage.getItem('clew.theme')
    if (theme === 'light' || theme === 'dark') root.dataset.theme = theme
    var language = localStorage.getItem('clew.language')
    root.lang = language === 'zh' || (language !== 'en' && /^zh/i.test(navigator.language)) ? 'zh-CN' : 'en'
  } catch {
    // Storage may be switched off: the system's settings apply.
  }
})()
