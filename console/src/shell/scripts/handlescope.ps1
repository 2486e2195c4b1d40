# handlescope completions powershell >> $PROFILE
Register-ArgumentCompleter -Native -CommandName handlescope -ScriptBlock {
    param($wordToComplete, $commandAst, $cursorPosition)
    $words = @($commandAst.CommandElements | Select-Object -Skip 1 |
        Where-Object { $_.Extent.EndOffset -lt $cursorPosition } | ForEach-Object { "$_" })
    & handlescope complete '--' @words "$wordToComplete" 2>$null | ForEach-Object {
        $value, $rest = $_ -split "`t", 2
        $text = if ($value -match '[\s;!*]') { "'$value'" } else { $value }
        $about = if ($rest) { $rest } else { $value }
        [System.Management.Automation.CompletionResult]::new($text, $value, 'ParameterValue', $about)
    }
}
