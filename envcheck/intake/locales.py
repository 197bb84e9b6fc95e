"""What loaders and shells say in other languages, put into the English that messages are known in.

Drivers and frameworks speak English everywhere; the C library, shells and Windows do not.
"""

from __future__ import annotations

import re

_PHRASES = (
    (
        "cannot open shared object file",
        (
            "Kann die Shared-Object-Datei nicht öffnen",
            "ne peut ouvrir le fichier d'objet partagé",
            "impossible d'ouvrir le fichier d'objet partagé",
            "impossible d'ouvrir le fichier objet partagé",
            "no se puede abrir el archivo del objeto compartido",
            "no se puede abrir el fichero del objeto compartido",
            "não é possível abrir arquivo no objeto compartilhado",
            "impossibile aprire il file oggetto condiviso",
            "nie można otworzyć pliku obiektu współdzielonego",
            "невозможно открыть разделяемый объектный файл",
            "无法打开共享对象文件",
            "無法開啟共用目的檔",
            "共有オブジェクトファイルを開けません",
            "공유 오브젝트 파일을 열 수 없음",
        ),
    ),
    (
        "No such file or directory",
        (
            "Datei oder Verzeichnis nicht gefunden",
            "Aucun fichier ou dossier de ce type",
            "Aucun fichier ou répertoire de ce nom",
            "No existe el archivo o el directorio",
            "No existe el fichero o el directorio",
            "Arquivo ou diretório inexistente",
            "Arquivo ou diretório não encontrado",
            "File o directory non esistente",
            "Nie ma takiego pliku ani katalogu",
            "Нет такого файла или каталога",
            "没有那个文件或目录",
            "沒有此一檔案或目錄",
            "そのようなファイルやディレクトリはありません",
            "그런 파일이나 디렉터리가 없습니다",
        ),
    ),
    (
        "undefined symbol",
        (
            "undefiniertes Symbol",
            "symbole non défini",
            "symbole indéfini",
            "símbolo sin definir",
            "símbolo indefinido",
            "símbolo não definido",
            "simbolo non definito",
            "неопределённый символ",
            "未定义的符号",
            "未定义符号",
            "未定義シンボル",
        ),
    ),
)
_NO_COMMAND = (
    "Kommando nicht gefunden",
    "Befehl nicht gefunden",
    "commande introuvable",
    "orden no encontrada",
    "no se encontró la orden",
    "comando non trovato",
    "comando não encontrado",
    "nie znaleziono polecenia",
    "команда не найдена",
    "未找到命令",
    "找不到命令",
    "コマンドが見つかりません",
    "명령어를 찾을 수 없음",
)
_NO_PROGRAM = (
    "不是内部或外部命令",
    "不是內部或外部命令",
    "ist entweder falsch geschrieben",
    "n'est pas reconnu en tant que",
    "no se reconoce como un comando",
    "non è riconosciuto come comando",
    "não é reconhecido como um comando",
    "не является внутренней или внешней",
    "は、内部コマンドまたは外部コマンド",
)
"""What the command prompt of Windows says of a name that is no program."""


def english(text: str) -> str:
    """A text in which known phrases of other languages stand in English."""
    for said, phrases in _PHRASES:
        for phrase in phrases:
            for each in (phrase, phrase[0].swapcase() + phrase[1:]):
                if each in text:
                    text = text.replace(each, said)
    for phrase in _NO_COMMAND:
        if phrase in text:
            text = re.sub(rf"[ ]?:[ ]?{phrase}\.?", ": command not found", text)
    for phrase in _NO_PROGRAM:
        if phrase in text:
            text = re.sub(
                rf"""["']?([\w.-]{{1,60}})["']?[ ]?{phrase}""", r"'\1' is not recognized", text
            )
    return text
